//! Shared parts of the integration tests: booting QEMU and reading its serial line.
