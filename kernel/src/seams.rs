//! The seams between the floors: every slot through which a lower floor calls a higher one.
//!
//! A floor may use only lower ones. Where it needs something from above (who the running task is, what wakes the readers
//! of the log), it declares a trait or a type of function and a slot for it, and the boot order fills the slot, once. This
//! is the list of them; `cargo xtask tidy` checks that every such slot of the kernel has a row, and that each row is
//! true. Owns nothing, and no code may ever stand here: a slot belongs to the floor that calls through it. No locks.
//!
//! The rows stand in the order in which boot fills the slots. Until then a call through one does what the last column
//! says.
//!
//! | slot | declared in | filled through | by | when, and what holds before |
//! |---|---|---|---|---|
//! | `PERF` | `trace/hook.rs` | `register` | `process/perf/told.rs` | `process::start::init`; no event is counted |
//! | `LOOK` | `time/look.rs` | `set_look` | `process/perf/sampler.rs` | `process::start::init`; nothing looks at the running task |
//! | `RING` | `trace/hook.rs` | `register` | `process/rings/tell.rs` | `process::start::init`; nothing is traced |
//! | `FATAL` | `arch/x86_64/entry/trap.rs` | `set_fatal` | `main.rs` | first of all; a trap that nothing resolves is a plain panic |
//! | `TIMER` | `arch/x86_64/irq/irq.rs` | `set_timer` | `time/timer.rs` | `time::start::init`; interrupts are off |
//! | `CALL` | `arch/x86_64/irq/irq.rs` | `set_call` | `mm/space/table/shootdown.rs` | `mm::start::init`; there is one CPU |
//! | `OBSERVER` | `arch/x86_64/irq/irq.rs` | `set_observer` | `random/sources/interrupt.rs` | `random::service::init`; interrupts are not seen |
//! | `HANDLERS` | `arch/x86_64/irq/irq.rs` | `register` | `drivers/uart.rs` | `drivers::uart::init`; lines of devices are masked |
//! | `SECOND` | `diag/panic.rs` | `set_second` | `main.rs` | after `drivers::uart::init`; a panic writes to the serial port alone |
//! | `CONSOLE` | `diag/klog.rs` | `set_console` | `main.rs` | after `drivers::uart::init`; the log polls the port |
//! | `SCHEDULER` | `sync/wait.rs` | `register_scheduler` | `process/start/init.rs` | `process::start::init`; nothing may wait |
//! | `PACER` | `sync/pace.rs` | `register_pacer` | `process/start/init.rs` | `process::start::init`; loops give the CPU to nobody |
//! | `CALLER` | `random/caller.rs` | `register_caller` | `process/start/init.rs` | `process::start::init`; nobody is privileged |
//! | `RUNNING` | `vfs/cred.rs` | `register_running` | `process/start/init.rs` | `process::start::init`; whoever writes is the kernel |
//! | `TRUSTED` | `mm/frames/buddy.rs` | `register_trusted` | `process/start/init.rs` | `process::start::init`; all memory is the kernel's |
//! | `PAYER` | `mm/frames/charge.rs` | `register_payer` | `process/start/init.rs` | `process::start::init`; nobody is charged |
//! | `LIMITS` | `mm/space/limits.rs` | `register_limits` | `process/start/init.rs` | `process::start::init`; a stack grows to 8 MiB, and nothing else is limited |
//! | `DESCRIBE` | `diag/panic.rs` | `set_describe` | `process/start/init.rs` | `process::start::init`; a panic names no task |
//! | `URGENT` | `vfs/notify/urgent.rs` | `register_urgent` | `process/start/init.rs` | `process::start::init`; owners of files are not told |
//! | `SEND` | `vfs/notify/listeners.rs` | `register_send` | `process/start/init.rs` | `process::start::init`; owners of files are not told |
//! | `JOB_CONTROL` | `drivers/tty/job.rs` | `register_job_control` | `process/tree/terminal.rs` | `process::start::init`; terminals have no sessions |
//! | `PROCESSES` | `fs/procfs/process.rs` | `register_process_table` | `process/proc/processes.rs` | `process::start::init`; /proc has no processes |
//! | `FILL` | `fs/tracefs.rs` | `register` | `process/perf/tracepoint/files.rs` | `process::start::init`; there is no tracefs |
//! | `RESCHEDULE` | `arch/x86_64/irq/irq.rs` | `set_reschedule` | `process/sched/place.rs` | `process::start::init`; there is one CPU |
//! | `FIFO_OPENER` | `vfs/object/inode.rs` | `register_fifo_opener` | `fs/pipe/fifo.rs` | `fs::pipe::init`; a fifo is ENXIO |
//! | `NOTIFY` | `diag/klog.rs` | `set_notify` | `fs/procfs/kmsg.rs` | `fs::start::init`; the log has no readers |
//! | `CALL_NAMES` | `process/watch/names.rs` | `register_names` | `syscall/proc.rs` | `syscall::init`; calls have no names |
//! | `SENDER` | `net/unix/sender.rs` | `register_sender` | `syscall/proc.rs` | `syscall::init`; messages come from nobody |
//! | `OBEY` | `drivers/tty/attention.rs` | `register_attention` | `syscall/system/sysrq.rs` | `syscall::init`; a break at the console is the terminal's |
//! | `LATER` | `process/task/later.rs` | `register_later` | `syscall/uring/setup.rs` | `syscall::init`; nothing is left to anybody |
//! | `CARRIER` | `fs/uevent.rs` | `register_carrier` | `net/create.rs` | `net::create::init`; events of devices reach nobody |
//! | `FATE` | `mm/frames/inject.rs` | `start` | `main.rs` | before process 1, with `alea.fail_alloc`; no allocation fails |
//! | `HOOKS` | `arch/x86_64/entry/trap.rs` | `register` | `main.rs` | before process 1; there is no user mode |
