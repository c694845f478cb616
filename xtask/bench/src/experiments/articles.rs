//! The articles: what each measured, and how it is done again.

use crate::profile::Generator;

/// An experiment, and what its article says.
pub struct Experiment {
    pub name: &'static str,
    pub article: &'static str,
    pub claim: &'static str,
    /// Whether it still holds.
    pub today: &'static str,
    /// The guest program that is init.
    pub program: &'static str,
    /// What one call took there, by rung.
    pub published: &'static [(&'static str, &'static str)],
    /// What must hold on any kernel, by fact.
    pub facts: &'static [(&'static str, bool)],
    /// The ways in which Alea does it; the last is the one that is compared with Linux.
    pub ways: &'static [Way],
    /// The Go program beside it, if there is one: its folder and its path in the guest.
    pub go: Option<(&'static str, &'static str)>,
}

impl Experiment {
    /// What the article found, in its words.
    pub fn published(&self, name: &str) -> Option<&'static str> {
        self.published.iter().find(|(published, _)| *published == name).map(|(_, said)| *said)
    }
}

/// The nanoseconds of a time such as `12.9 us`; nothing for what is no time.
pub fn nanoseconds(text: &str) -> Option<f64> {
    let (figure, unit) = text.split_once(' ')?;
    let scale = match unit {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        _ => return None,
    };
    Some(figure.parse::<f64>().ok()? * scale)
}

/// One boot of Alea.
pub struct Way {
    /// The title of its column.
    pub title: &'static str,
    pub generator: Option<Generator>,
    /// Whether each RDRAND is charged with what the article measured.
    pub taxed: bool,
}

const PLAIN: [Way; 1] = [Way { title: "Alea", generator: None, taxed: false }];

pub const EXPERIMENTS: [Experiment; 5] = [
    Experiment {
        name: "fread",
        article: "From fread to syscall",
        claim: "Opening /dev/urandom for each draw costs a hundred times a getrandom, and a buffer of one's own is the fastest of all.",
        today: "The order holds on both kernels. But a child of fork repeats its parent's buffered bytes, which a page that is wiped on fork mends at no cost; and where the kernel has a vDSO, its code draws in user space and is right after a fork and after a machine was cloned, too.",
        program: "fread",
        published: &[
            ("fopen-fread-fclose", "12.9 us"),
            ("libc-getrandom", "118 ns"),
            ("syscall", "299 ns"),
            ("buffered", "73.8 ns"),
        ],
        facts: &[
            ("buffered-repeats-after-fork", true),
            ("wiped-repeats-after-fork", false),
            ("vdso-repeats-after-fork", false),
        ],
        ways: &PLAIN,
        go: None,
    },
    Experiment {
        name: "tax",
        article: "The 50 us RDRAND Tax",
        claim: "Under KVM each RDRAND leaves the virtual machine for 25 us, so that 16 random bytes are half of an exec; a lock-free SplitMix64 takes their cost away.",
        today: "The tax is still there for a kernel that asks RDRAND for each draw (the rdrand column, with the article's cost charged). SplitMix64 is not what it takes: ChaCha20 with fast key erasure costs an exec the same, and its output tells nobody the next.",
        program: "tax",
        // With RDRAND, and with SplitMix64.
        published: &[
            ("exec_true", "118 us, then 66 us"),
            ("shell_noop", "162 us, then 111 us"),
            ("pipe_grep", "429 us, then 314 us"),
            ("sed_pipeline", "526 us, then 407 us"),
            ("fork_exit", "43 us, then 46 us"),
            ("close_cloexec_cmdline, of an exec", "0.1 %"),
            ("address_space, of an exec", "6.1 %"),
            ("elf_load, of an exec", "1.2 %"),
            ("random, of an exec", "53.3 %"),
            ("prefault, of an exec", "8.8 %"),
            ("stack, of an exec", "1.2 %"),
            ("switch, of an exec", "0.5 %"),
        ],
        facts: &[],
        ways: &[
            Way { title: "Alea, rdrand", generator: Some(Generator::Rdrand), taxed: true },
            Way { title: "splitmix64", generator: Some(Generator::Splitmix64), taxed: false },
            Way { title: "chacha20", generator: Some(Generator::Chacha20), taxed: false },
        ],
        go: None,
    },
    Experiment {
        name: "strings",
        article: "Syscalls in Go",
        claim: "A random string drawn a character at a time takes sixteen times as long as one drawn whole, and strace shows why: three million calls against four hundred thousand.",
        today: "The cause holds where there is no vDSO; the counts are 19 calls a string against one, since strace without -f sees one thread of Go's. With a vDSO hardly a call is left. The fast version is biased: 55 of the 67 characters come a third more often. One draw of eight bytes gives an unbiased string at the same cost.",
        program: "gostrings",
        published: &[
            ("by-character-without-vdso", "5.96 us"),
            ("by-string-without-vdso", "376 ns"),
            ("getrandom, by-character-without-vdso", "2.98"),
            ("getrandom, by-string-without-vdso", "0.43"),
        ],
        facts: &[("by-string-prefers-some", true), ("unbiased-prefers-some", false)],
        ways: &PLAIN,
        go: Some(("userland/experiments/strings", "experiments/strings")),
    },
    Experiment {
        name: "syscall",
        article: "What a syscall actually costs",
        claim: "A trivial system call costs about 350 ns, whatever it does, so a program that has much to do does several things in each.",
        today: "It holds, with less to gain where the call is cheaper: pieces of a file gain a factor of four on Alea and eight on Linux. Datagrams gain nothing on either: their cost is the network's.",
        program: "batches",
        published: &[("getpid", "350 ns")],
        facts: &[],
        ways: &PLAIN,
        go: None,
    },
    Experiment {
        name: "locking",
        article: "Locking in crypto/rand",
        claim: "Ten goroutines that draw at once spend 98 % of their time in getrandom, half of it at one spinlock; one stream gives 13 MB/s.",
        today: "The lock is gone from both kernels: a draw costs the same however many threads draw, and most of a block's cost is the program's own.",
        program: "locking",
        // 25.7 s for ten producers' 9,999 blocks each; 139,436,064 bytes in 10 s.
        published: &[("block-made-and-taken", "257 us"), ("stream-KiB", "73.4 us")],
        facts: &[("blocks-have-bytes", true)],
        ways: &PLAIN,
        go: None,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_shares_are_none() {
        assert_eq!(nanoseconds("118 us"), Some(118_000.0));
        assert_eq!(nanoseconds("73.8 ns"), Some(73.8));
        assert_eq!(nanoseconds("53.3 %"), None);
    }
}
