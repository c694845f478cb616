//! The machine's half of a task, and the switch between tasks.
//!
//! Owns, per task: kernel stack, saved context, vector state, FS and GS bases and the work flags; per
//! CPU: one reference to the running task, from the switch to it until after the switch away from it.
//! The scheduler above decides who runs; what makes a switch safe is checked here: the next task is not
//! on any CPU, and the previous one is kept until nothing runs on its stack any more.
//!
//! Never drops a task on its own stack. Locks: none; interrupts are off around a switch.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::cell::{Cell, UnsafeCell};
use core::marker::PhantomData;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::fpu::{self, FpuState};
use super::switch::{self, Context};
use crate::arch::entry::frame::{SyscallTable, TrapFrame};
use crate::arch::entry::{shift, syscall, trap};
use crate::base::current::Current;
use crate::base::{cpu, percpu};

/// Memory that a task runs on in the kernel.
///
/// # Safety
/// `top` is the 16-byte aligned end of mapped, writable memory of at least 8 KiB that nothing else uses
/// while the value lives; moving the value does not move the memory.
pub unsafe trait Stack: Send + Sync {
    /// The address just above the last byte.
    fn top(&self) -> u64;
}

/// A table of system calls that is none of the kernel's own: it stays as long as a task has it in use.
pub type OwnCalls = Arc<Box<SyscallTable>>;

/// What the system calls of a task go through.
pub enum Calls {
    /// The table that all begin with.
    Table,
    /// The hook `watched`, whatever the number.
    Watched,
    /// A table of its own; the same as `Watched` where none may be had ([`may_have_own_calls`]).
    Own(OwnCalls),
}

/// Whether tasks may have tables of their own. With `randomize_kstack_offset` all go through one that is the kernel's.
pub fn may_have_own_calls() -> bool {
    !shift::is_on()
}

/// The machine's half of a task.
pub struct Machine<S> {
    context: UnsafeCell<Context>,
    /// `None` for the code that booted a CPU: it keeps the stack it came with.
    stack: Option<S>,
    stack_top: u64,
    fpu: Option<FpuState>,
    /// Valid while the task does not run.
    fs_base: Cell<u64>,
    gs_base: Cell<u64>,
    work: AtomicU32,
    /// Its system calls; null for who never has any. Only the task itself changes it.
    calls: Cell<*const SyscallTable>,
    /// Keeps the table that `calls` is, if it is its own. Touched as `calls` is.
    own_calls: Cell<Option<OwnCalls>>,
    /// From before the switch to the task until after the switch away from it.
    on_cpu: AtomicBool,
}

// SAFETY: `context`, `calls`, `own_calls`, `fs_base` and `gs_base` are touched only by the CPU that holds `on_cpu`, or while the
// task has not run yet, by who makes it.
unsafe impl<S: Sync> Sync for Machine<S> {}
// SAFETY: the parts are addresses, of statics too, and owned memory.
unsafe impl<S: Send> Send for Machine<S> {}

impl<S: Stack> Machine<S> {
    /// The half of the code that runs already: what booted this CPU.
    pub fn running() -> Self {
        Self::build(Context::empty(), None, percpu::kernel_stack_top(), None, true)
    }

    /// The half of the code that is about to run on a new CPU, on this stack.
    pub fn starting(stack: S) -> Self {
        let top = stack.top();
        Self::build(Context::empty(), Some(stack), top, None, true)
    }

    /// A task that starts in `entry(arg)` in the kernel, interrupts off; `entry` calls
    /// [`Tasks::finish_switch`] first. With `fpu` it may become a user task.
    pub fn kernel(
        stack: S,
        fpu: Option<FpuState>,
        entry: extern "C" fn(usize) -> !,
        arg: usize,
    ) -> Self {
        let top = stack.top();
        // SAFETY: the stack is whole and unused (`Stack`).
        let context = unsafe { switch::prepare_kernel_stack(top, entry, arg) };
        Self::build(context, Some(stack), top, fpu, false)
    }

    /// A task that calls `first(arg)` in the kernel, interrupts off, which calls
    /// [`Tasks::finish_switch`] first, and then enters user mode with `frame`.
    pub fn user(
        stack: S,
        fpu: FpuState,
        frame: &TrapFrame,
        (fs_base, gs_base): (u64, u64),
        first: extern "C" fn(usize),
        arg: usize,
    ) -> Self {
        let top = stack.top();
        // SAFETY: the stack is whole and unused (`Stack`).
        let (context, _) = unsafe { switch::prepare_user_stack(top, frame, first, arg) };
        let machine = Self::build(context, Some(stack), top, Some(fpu), false);
        machine.fs_base.set(fs_base);
        machine.gs_base.set(gs_base);
        machine
    }

    fn build(
        context: Context,
        stack: Option<S>,
        stack_top: u64,
        fpu: Option<FpuState>,
        on_cpu: bool,
    ) -> Self {
        Self {
            context: UnsafeCell::new(context),
            stack,
            stack_top,
            fpu,
            fs_base: Cell::new(0),
            gs_base: Cell::new(0),
            work: AtomicU32::new(0),
            calls: Cell::new(syscall::table()),
            own_calls: Cell::new(None),
            on_cpu: AtomicBool::new(on_cpu),
        }
    }

    /// The work flags: nonzero keeps the task from returning to user mode directly.
    #[inline]
    pub fn work(&self) -> &AtomicU32 {
        &self.work
    }

    /// Whether it may run user code: it has a vector state.
    #[inline]
    pub fn is_of_user(&self) -> bool {
        self.fpu.is_some()
    }

    /// Whether the task runs on some CPU or is just leaving one.
    pub fn is_on_cpu(&self) -> bool {
        // Acquire: pairs with the Release in `finish_switch`.
        self.on_cpu.load(Ordering::Acquire)
    }

    /// Whether a user task is in a system call.
    #[inline]
    pub fn is_in_call(&self) -> bool {
        if self.stack.is_none() || self.fpu.is_none() {
            return false;
        }
        // SAFETY: as in `user_pc_sp`.
        let number =
            unsafe { (&raw const (*switch::user_frame(self.stack_top)).orig_rax).read_volatile() };
        number.cast_signed() >= 0
    }

    /// The number and the arguments of the system call that a user task is in, if it is in one.
    pub fn user_call(&self) -> Option<(u64, [u64; 6])> {
        let frame = self.user_frame()?;
        frame.in_syscall().then(|| (frame.syscall_number(), frame.syscall_args()))
    }

    /// The user's registers of a task that is in the kernel.
    pub fn user_frame(&self) -> Option<TrapFrame> {
        if self.stack.is_none() || self.fpu.is_none() {
            return None;
        }
        // SAFETY: as in `user_pc_sp`.
        Some(unsafe { switch::user_frame(self.stack_top).cast::<TrapFrame>().read_volatile() })
    }

    /// The user's program counter and stack pointer of a task that is in the kernel.
    pub fn user_pc_sp(&self) -> (u64, u64) {
        if self.stack.is_none() || self.fpu.is_none() {
            return (0, 0);
        }
        // SAFETY: a user task's frame lies at the top of its stack, which lives as long as `self`; the
        // two words are plain numbers, and one that changes meanwhile is only out of date.
        unsafe {
            let frame = switch::user_frame(self.stack_top);
            ((&raw const (*frame).rip).read_volatile(), (&raw const (*frame).rsp).read_volatile())
        }
    }
}

/// What the process floor's task type provides.
pub trait Running: Send + Sync + 'static {
    type Stack: Stack;
    /// Its machine's half.
    fn machine(&self) -> &Machine<Self::Stack>;
}

/// The running tasks of all CPUs. There is one, made by [`running_tasks!`](crate::running_tasks).
pub struct Tasks<T>(PhantomData<fn() -> T>);

impl<T: Running> Current<T> {
    /// Its vector state; `None` for a kernel thread.
    #[inline]
    pub fn fpu(self) -> Option<Current<FpuState>> {
        self.find(|task| task.machine().fpu.as_ref())
    }
}

crate::per_cpu! {
    /// The task that was switched away from, until `finish_switch`.
    static PREVIOUS: Cell<*const ()> = Cell::new(ptr::null());
}

impl<T: Running> Tasks<T> {
    /// For the macro only.
    ///
    /// # Safety
    /// There is one value in the kernel: the per-CPU pointers are read as `T`.
    #[doc(hidden)]
    pub const unsafe fn new() -> Self {
        Self(PhantomData)
    }

    /// Makes `task` stand for the code that runs now. Once per CPU, before anything else here.
    pub fn adopt(&self, task: Arc<T>) {
        assert!(percpu::current().is_null(), "this CPU runs a task already");
        assert!(task.machine().is_on_cpu(), "only running code can be adopted");
        let task = Arc::into_raw(task);
        // SAFETY: the reference in the per-CPU block keeps the task, and with it the flags.
        unsafe {
            let machine = (*task).machine();
            let calls = machine.calls.get().cast();
            percpu::set_current(task.cast(), &raw const machine.work, machine.stack_top, calls);
        }
    }

    /// Whether this CPU runs tasks yet.
    #[inline]
    pub fn is_active(&self) -> bool {
        !percpu::current().is_null()
    }

    /// The running task.
    #[inline]
    pub fn current(&self) -> Current<T> {
        // SAFETY: the CPU holds a reference to the running task, and only `T`s are stored. It outlives what the task
        // has on its stack.
        unsafe { Current::new(&*percpu::current().cast::<T>()) }
    }

    /// A counted reference to the running task.
    #[inline]
    pub fn current_arc(&self) -> Arc<T> {
        let task = percpu::current().cast::<T>();
        // SAFETY: the pointer came from `Arc::into_raw`, and the CPU's own reference lives.
        unsafe {
            Arc::increment_strong_count(task);
            Arc::from_raw(task)
        }
    }

    /// Switches to `next`; returns when the calling task is switched to again, interrupts still off, with the
    /// task that was switched away from. The address space of `next` is active already.
    #[inline]
    #[must_use = "what was switched away from may have to go elsewhere"]
    pub fn switch(&self, next: Arc<T>) -> Option<Arc<T>> {
        debug_assert!(!cpu::interrupts_enabled());
        let prev = self.current();
        if ptr::eq(&*prev, &*next) {
            return None;
        }
        let next = Arc::into_raw(next);
        // SAFETY: the reference just turned into a pointer keeps it; it becomes the CPU's own below.
        let (from, to) = (prev.machine(), unsafe { (*next).machine() });
        // Acquire: pairs with the Release in `finish_switch`: the context is saved.
        while to.on_cpu.load(Ordering::Acquire) {
            cpu::relax();
        }
        // Relaxed: only this CPU was given `next`; others only wait for it to become false.
        to.on_cpu.store(true, Ordering::Relaxed);
        switch_user_state(from, to);
        PREVIOUS.set(percpu::current());
        // SAFETY: `next` is kept by the reference turned into a pointer above; it is on no other CPU, its context was saved
        // by a switch or made for it, and `prev` is kept until `finish_switch`.
        unsafe {
            let calls = to.calls.get().cast();
            percpu::set_current(next.cast(), &raw const to.work, to.stack_top, calls);
            switch::switch(from.context.get(), to.context.get());
        }
        self.finish_switch()
    }

    /// The second half of a switch, on the stack of the new task: drops the previous one, which is returned:
    /// nothing runs on its stack any more.
    #[inline]
    #[must_use = "see `switch`"]
    pub fn finish_switch(&self) -> Option<Arc<T>> {
        let previous = PREVIOUS.get().cast::<T>();
        if previous.is_null() {
            return None;
        }
        PREVIOUS.set(ptr::null());
        // SAFETY: the reference that the CPU held while the task ran; nothing runs on its stack now.
        let previous = unsafe { Arc::from_raw(previous) };
        // Release: pairs with the Acquires in `switch` and `is_on_cpu`.
        previous.machine().on_cpu.store(false, Ordering::Release);
        Some(previous)
    }

    /// From its next system call on, the running task's calls go through this.
    pub fn call_through(&self, calls: Calls) {
        let watched = || &raw const *shift::watched(&trap::WATCHED_CALLS);
        let (table, own) = match calls {
            Calls::Table => (syscall::table(), None),
            Calls::Own(own) if may_have_own_calls() => (&raw const **own, Some(own)),
            Calls::Watched | Calls::Own(_) => (watched(), None),
        };
        let task = self.current();
        let machine = task.machine();
        machine.calls.set(table);
        // SAFETY: a static, or `own`, which the task keeps until it has another one, that is until after the next time that
        // it comes here, and which is in use by no other CPU: the task itself takes it over, here and at each switch.
        unsafe { percpu::set_calls(table.cast()) };
        drop(machine.own_calls.replace(own));
    }

    /// Leaves the kernel part of the running task for good and enters user mode with `frame`.
    pub fn enter_user(&self, frame: &TrapFrame) -> ! {
        let task = self.current();
        let machine = task.machine();
        assert!(machine.stack.is_some() && machine.fpu.is_some(), "no user task");
        assert!(frame.user_mode(), "not a user frame");
        cpu::irq_disable();
        machine.load_fpu();
        // SAFETY: the task runs on its own stack, which is abandoned as documented.
        unsafe { syscall::enter_user(frame) }
    }
}

impl<S> Machine<S> {
    fn load_fpu(&self) {
        if let Some(fpu) = &self.fpu {
            fpu.load();
        }
    }
}

/// FPU, FS and GS: of user tasks only; a kernel thread leaves what is there.
#[inline]
fn switch_user_state<S: Stack>(from: &Machine<S>, to: &Machine<S>) {
    if from.fpu.is_some() {
        from.fs_base.set(switch::fs_base());
        from.gs_base.set(switch::user_gs_base());
    }
    fpu::switch(from.fpu.as_ref(), to.fpu.as_ref());
    if to.fpu.is_some() {
        switch::set_fs_base(to.fs_base.get());
        if switch::user_gs_base() != to.gs_base.get() {
            switch::set_user_gs_base(to.gs_base.get());
        }
    }
}

/// Declares the one [`Tasks`] of the kernel; a second one does not link.
#[macro_export]
macro_rules! running_tasks {
    ($(#[$doc:meta])* $vis:vis static $name:ident: $task:ty) => {
        $(#[$doc])*
        #[allow(unsafe_code, reason = "the exported symbol makes this the only one")]
        $vis static $name: $crate::arch::task::Tasks<$task> = {
            #[unsafe(no_mangle)]
            static ALEA_THE_ONE_TASK_TYPE: u8 = 0;
            // SAFETY: the symbol above exists once, so this is the only value.
            unsafe { $crate::arch::task::Tasks::new() }
        };
    };
}
