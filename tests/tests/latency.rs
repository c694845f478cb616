//! How long a task of the highest priority waits while another user does the worst that the kernel allows: a sample
//! of `cargo xtask latency`.
//!
//! Instructions are counted, so that the figures are the same on a busy host.

use alea_tests::{alea, boot};
use xtask_bench::latency::{GOAL_NS, Latencies, command_line};

/// From SIGKILL to the last reaped process of an attack: what it has in memory must be given back meanwhile.
const KILLED_IN_NS: u64 = 1_000_000_000;

/// Each of them held its CPU too long once, most for seconds, and could not be killed.
const SAMPLE: &str = "populate_read_32TB,mincore_1TB,populate_shared,map_populate,mremap,exit_big,fork_many_mappings,\
                      read_smaps,readv_zeros,sendfile_hole,copy_file_range_hole,write_untouched,fallocate,\
                      exec_arguments,timers,bind_all_ports,truncate_scattered,uring_close_10000,\
                      names_40000,list_tcp_4000,close_unix_listener_4000,netstat_all_ports,time_wait_4096,\
                      time_wait_one_port,bind_one_port_8000";

#[test]
fn no_system_call_holds_its_cpu() {
    // As many files as there are ports may be open (`fs.file-max`) with 283 MB beside the initramfs of the tests, which grows.
    let machine = alea().memory("1G").icount(true).append(&command_line(SAMPLE, 20));
    let outcome = boot(&machine).unwrap().powered_off().unwrap();
    let read = Latencies::read(&outcome.output);
    let read = read.unwrap_or_else(|| panic!("it did not come to its end: {}", outcome.describe()));
    assert!(read.skipped.is_empty(), "refused: {:?}", read.skipped);
    assert_eq!(read.attacks.len(), SAMPLE.split(',').count());
    for attack in &read.attacks {
        let worst = attack.worst.max(attack.preparing);
        assert!(worst <= GOAL_NS, "{}: {worst} ns", attack.name);
        assert!(attack.killing <= KILLED_IN_NS, "{}: ends {} ns late", attack.name, attack.killing);
    }
}
