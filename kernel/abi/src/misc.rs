//! Structures that describe the machine: `struct new_utsname`, `struct sysinfo`.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

const FIELD: usize = 65;

/// `struct new_utsname`: six NUL-terminated names.
#[derive(Clone, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct NewUtsname {
    names: [[u8; FIELD]; 6],
}

impl Default for NewUtsname {
    fn default() -> Self {
        Self { names: [[0; FIELD]; 6] }
    }
}

macro_rules! setters {
    ($($name:ident = $index:literal;)*) => { $(
        /// Sets the name, cut to 64 bytes.
        pub fn $name(&mut self, value: &[u8]) {
            let len = value.len().min(FIELD - 1);
            self.names[$index] = [0; FIELD];
            self.names[$index][..len].copy_from_slice(&value[..len]);
        }
    )* };
}

impl NewUtsname {
    setters! {
        set_sysname = 0;
        set_nodename = 1;
        set_release = 2;
        set_version = 3;
        set_machine = 4;
        set_domainname = 5;
    }
}

/// `struct sysinfo` of x86_64.
#[derive(Clone, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Sysinfo {
    /// Seconds since boot.
    pub uptime: i64,
    /// 1, 5 and 15 minute load averages, 16 fraction bits.
    pub loads: [u64; 3],
    pub totalram: u64,
    pub freeram: u64,
    pub sharedram: u64,
    pub bufferram: u64,
    pub totalswap: u64,
    pub freeswap: u64,
    pub procs: u16,
    pub pad: u16,
    pub pad2: u32,
    pub totalhigh: u64,
    pub freehigh: u64,
    /// Bytes that the memory figures count in.
    pub mem_unit: u32,
    pub pad3: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_linuxs() {
        assert_eq!(size_of::<NewUtsname>(), 390);
        assert_eq!(size_of::<Sysinfo>(), 112);
    }

    #[test]
    fn names_are_cut_and_terminated() {
        let mut uts = NewUtsname::default();
        uts.set_nodename(&[b'x'; 100]);
        assert_eq!(uts.names[1][63], b'x');
        assert_eq!(uts.names[1][64], 0);
    }
}
