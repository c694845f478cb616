"""Commands of gdb for Alea's kernel: `cargo xtask debug` loads this file, and connects.

    alea-ps             all threads: number, state, CPU, where each is in the kernel
    alea-bt [TID]       the backtrace of one thread, or of all
    alea-log [LINES]    the kernel's log
    $alea_current()     the thread that runs on the selected CPU
    $alea_task(TID)     a thread, as a value: print *$alea_task(1).process

It reads the memory of a machine that stands and never writes: no register is changed to walk the stack of a thread
that does not run. Structures are read by the kernel's own debug information, so a field that is renamed is an error here, and
`tests/tests/debug.rs` runs each command.
"""

import re
import struct

import gdb
import gdb_lookup

gdb_lookup.register_printers(gdb.current_objfile() or gdb)

TASK = "alea_kernel::process::task::task::Task"
ENTRY = "alea_kernel::process::tree::table::Entry"
FRAME = "alea_kernel::arch::x86_64::entry::frame::TrapFrame"
#: The stack of a thread that does not run begins with what `arch/x86_64/task/switch.rs` pushed last.
SAVED = struct.Struct("<7Q")
#: The header of a line in the log: its number, its time, its length, its level.
LINE = struct.Struct("<QQHB1x")
STATES = "RSDKX"
USER_HALF = 1 << 47
FRAMES = 100


# ---- values of Rust ----

def inner(value):
    """What a lock, an atomic or a cell holds."""
    while value.type.strip_typedefs().code == gdb.TYPE_CODE_STRUCT:
        names = [field.name for field in value.type.fields()]
        wrapped = [name for name in ("value", "v") if name in names]
        if not wrapped:
            break
        value = value[wrapped[0]]
    return value


def word(value):
    """A value of one word, such as an `Option<Arc<T>>`, as a number: 0 is None."""
    return int(value.address.cast(gdb.lookup_type("u64").pointer()).dereference())


def arc(value, name):
    """What an `Option<Arc<NAME>>` points to, or None."""
    address = word(value)
    if address == 0:
        return None
    counted = gdb.lookup_type("alloc::sync::ArcInner<%s>" % name)
    return gdb.Value(address).cast(counted.pointer()).dereference()["data"]


def elements(vector):
    """The elements of a `Vec`."""
    return (element for _, element in gdb.default_visualizer(vector).children())


def memory(address, length):
    return bytes(gdb.selected_inferior().read_memory(address, length))


def static(name):
    symbol = gdb.lookup_global_symbol(name) or gdb.lookup_static_symbol(name)
    return symbol.value() if symbol else gdb.parse_and_eval(name)


# ---- threads ----

def tasks():
    """All threads, in the order of their numbers."""
    entries = gdb.lookup_type(ENTRY).array(63).pointer()
    table = inner(static("alea_kernel::process::tree::table::TABLE"))
    for chunk in elements(table["chunks"]):
        if word(chunk) != 0:
            chunk = gdb.Value(word(chunk)).cast(entries).dereference()
            for at in range(64):
                task = arc(chunk[at]["task"], TASK)
                if task is not None:
                    yield task


def tid_of(task):
    return int(inner(task["tid"]))


def find(tid):
    for task in tasks():
        if tid_of(task) == tid:
            return task
    raise gdb.GdbError("no thread has the number %d: alea-ps lists all" % tid)


def comm(task):
    name = inner(task["comm"])
    return memory(int(name.address), 16).split(b"\0")[0].decode(errors="replace")


def current():
    """The thread that runs on the selected CPU; None while it boots."""
    mode = int(gdb.parse_and_eval("$cs")) & 3
    base = int(gdb.parse_and_eval("$k_gs_base" if mode == 3 else "$gs_base")) & (1 << 64) - 1
    if base < USER_HALF:
        return None
    block = gdb.lookup_type("alea_kernel::base::percpu::CpuBlock").pointer()
    task = int(inner(gdb.Value(base).cast(block).dereference()["current"]))
    return gdb.Value(task).cast(gdb.lookup_type(TASK).pointer()) if task else None


def running():
    """Which CPU (a thread of gdb's) runs which task: by the task's address."""
    chosen = gdb.selected_thread()
    found = {}
    for cpu in gdb.selected_inferior().threads():
        cpu.switch()
        task = current()
        if task is not None:
            found[int(task)] = cpu
    chosen.switch()
    return found


def describe(task, cpus):
    state = STATES[int(inner(task["sched"]["state"]))]
    cpu = cpus.get(int(task.address))
    return "%6d  %-15s  %s  %s" % (
        tid_of(task), comm(task), state, "on CPU %d" % (cpu.num - 1) if cpu else "cpu %d   " % int(inner(task["sched"]["cpu"])))


# ---- stacks ----

#: What a reader of a backtrace has no use for: a closure's or an implementation's number, a reference's sign.
NOISE = re.compile(r"::\{(impl|closure)(_env)?#\d+\}|^alea_kernel::")


def short(name):
    """A function's name without what it is generic over."""
    text, depth = "", 0
    for char in name.replace("->", ""):
        depth += (char == "<") - (char == ">")
        text += char if depth == 0 and char != ">" else ""
    return NOISE.sub("", text)


def functions(pc):
    """The functions at an address, what is inlined first."""
    names = []
    block = gdb.block_for_pc(pc)
    while block is not None and not block.is_global and not block.is_static:
        if block.function is not None:
            name = short(block.function.print_name)
            if name not in names:
                names.append(name)
        block = block.superblock
    # Assembly has no functions, but its names.
    return names or [gdb.execute("info symbol %d" % pc, to_string=True).split(" ")[0]]


def line(pc):
    place = gdb.find_pc_line(pc)
    return " at %s:%d" % (place.symtab.filename, place.line) if place.symtab else ""


#: How a thread sleeps says less than why: what `alea-ps` passes over.
SLEEPING = ("process::sched::", "sync::", "arch::", "base::", "core::", "alea_waitlist::")


def place_of(task):
    """The innermost function that says why a thread sleeps."""
    own = [name for pc in return_addresses(task) for name in functions(pc - 1)]
    return next((name for name in own if not name.startswith(SLEEPING)), own[0] if own else "?")


def return_addresses(task):
    """Of a thread that does not run, innermost first, by the chain of frame pointers."""
    rsp = int(inner(task["machine"]["context"])["rsp"])
    *_, rbp, pc = SAVED.unpack(memory(rsp, SAVED.size))
    for _ in range(FRAMES):
        if pc < USER_HALF:
            return
        yield pc
        if rbp < USER_HALF:
            return
        rbp, pc = struct.unpack("<2Q", memory(rbp, 16))


def user_frame(task):
    frame = gdb.lookup_type(FRAME)
    top = int(task["machine"]["stack_top"])
    return gdb.Value(top - frame.sizeof).cast(frame.pointer()).dereference()


def backtrace(task, cpus):
    print(describe(task, cpus))
    cpu = cpus.get(int(task.address))
    if cpu:
        chosen = gdb.selected_thread()
        cpu.switch()
        gdb.execute("backtrace")
        chosen.switch()
        return
    for depth, pc in enumerate(return_addresses(task)):
        inlined, at = "#%-2d 0x%x in" % (depth, pc), line(pc - 1)
        for name in functions(pc - 1):
            print("%s %s%s" % (inlined, name, at))
            inlined, at = "                         ", ""
    user = user_frame(task)
    if int(user["rip"]) != 0:
        call = int(user["orig_rax"])
        told = ", in system call %d" % call if call < USER_HALF else ""
        print("    user mode: rip 0x%x, rsp 0x%x%s" % (int(user["rip"]), int(user["rsp"]), told))


# ---- commands ----

def number_of(text):
    try:
        return int(text, 0)
    except ValueError:
        raise gdb.GdbError("a number is wanted, not %r" % text)


class Ps(gdb.Command):
    """All threads: number, name, state (as ps has it; K is killable), CPU, and where in the kernel one that sleeps is."""

    def invoke(self, argument, from_tty):
        cpus = running()
        for task in tasks():
            asleep = int(task.address) not in cpus
            print(describe(task, cpus) + ("  " + place_of(task) if asleep else ""))


class Bt(gdb.Command):
    """The backtrace of one thread by its number, or of all: alea-bt [TID]"""

    def invoke(self, argument, from_tty):
        cpus = running()
        for task in [find(number_of(argument))] if argument else list(tasks()):
            backtrace(task, cpus)


class Log(gdb.Command):
    """The kernel's log, or its last lines: alea-log [LINES]"""

    def invoke(self, argument, from_tty):
        ring = inner(static("alea_kernel::diag::klog::RING"))
        size = ring["bytes"].type.sizeof
        text = memory(int(ring["bytes"].address), size)
        at, head, lines = int(ring["tail"]), int(ring["head"]), []
        read = lambda start, length: bytes(text[place % size] for place in range(start, start + length))
        while at < head:
            _, time, length, _ = LINE.unpack(read(at, LINE.size))
            lines.append("[%5d.%06d] %s" % (
                time // 10**9, time // 1000 % 10**6, read(at + LINE.size, length).decode(errors="replace")))
            at += LINE.size + length
        for line in lines[-number_of(argument):] if argument else lines:
            print(line)


class Current(gdb.Function):
    """The thread that runs on the selected CPU."""

    def invoke(self):
        task = current()
        if task is None:
            raise gdb.GdbError("no thread runs on this CPU yet")
        return task


class Find(gdb.Function):
    """A thread by its number."""

    def invoke(self, tid):
        return find(int(tid)).address


Ps("alea-ps", gdb.COMMAND_STATUS)
Bt("alea-bt", gdb.COMMAND_STACK)
Log("alea-log", gdb.COMMAND_STATUS)
Current("alea_current")
Find("alea_task")
