//! A small, bounds-checked reader of the ACPI tables the kernel needs: FADT, MADT, HPET and the
//! `\_S5` package of the DSDT; the tables with byte code are kept for those who look for a device, and where a TPM and a
//! seed lie.
//!
//! Owns the facts found, written once by `init`. Firmware data is never trusted: every length is
//! checked and an odd table is as good as an absent one. Locks: none.

use arrayvec::ArrayVec;
use core::sync::atomic::{AtomicBool, Ordering};
use x86_64::PhysAddr;

use crate::base::kmap::{self, Cache};
use crate::base::port::Ports;
use crate::sync::Once;

/// An I/O APIC and the first global interrupt it serves.
#[derive(Clone, Copy, Debug)]
pub struct IoApicEntry {
    pub address: u32,
    pub gsi_base: u32,
}

/// An ISA interrupt that is wired differently.
#[derive(Clone, Copy, Debug)]
pub struct Override {
    pub irq: u8,
    pub gsi: u32,
    pub active_low: bool,
    pub level: bool,
}

/// A register of one byte that the tables describe.
#[derive(Clone, Copy, Debug)]
enum Register {
    Port(u16),
    /// Where it is mapped.
    Memory(u64),
}

impl Register {
    /// Reads a generic address structure; nothing if it names none, or one of another kind.
    fn read(structure: &[u8]) -> Option<Self> {
        match (*structure.first()?, u64_at(structure, 4)?) {
            (_, 0) => None,
            (0, address) => kmap::map(address, 1, Cache::Uncached).map(Self::Memory),
            (1, port) => u16::try_from(port).ok().map(Self::Port),
            _ => None,
        }
    }

    fn write(self, value: u8) {
        match self {
            Self::Port(port) => register(port, 1).write8(0, value),
            // SAFETY: mapped by `read`, and the tables say that it switches between power states or resets the machine.
            Self::Memory(at) => unsafe { (at as *mut u8).write_volatile(value) },
        }
    }
}

/// What the tables say.
#[derive(Debug, Default)]
pub struct Acpi {
    pm1a_control: u16,
    pm1b_control: u16,
    smi_command: u16,
    acpi_enable: u8,
    s5: Option<(u8, u8)>,
    reset: Option<(Register, u8)>,
    /// How a machine without the PM1 registers is put to sleep.
    sleep_control: Option<Register>,
    /// The port of the 3.579545 MHz timer and whether it has 32 bits.
    pub pm_timer: Option<(u16, bool)>,
    pub hpet: Option<u64>,
    pub io_apics: ArrayVec<IoApicEntry, 8>,
    pub overrides: ArrayVec<Override, 16>,
    pub local_apics: ArrayVec<u32, 64>,
    /// The DSDT and the SSDTs, whole.
    pub byte_code: ArrayVec<&'static [u8], 16>,
    /// A TPM 2.0: where its control area lies, and how it is started.
    pub tpm: Option<(u64, u32)>,
    /// A table `OEM0`: where it lies, and its length.
    oem0: Option<(u64, usize)>,
}

static ACPI: Once<Acpi> = Once::new();

/// The facts; empty ones before `init`.
pub fn get() -> Option<&'static Acpi> {
    ACPI.get()
}

/// Reads the tables, from `rsdp` or where a BIOS leaves the root pointer.
pub fn init(rsdp: Option<PhysAddr>) {
    ACPI.call_once(|| {
        let mut found = Acpi::default();
        if let Some(root) = rsdp.map(PhysAddr::as_u64).or_else(scan_bios) {
            found.read_root(root);
        }
        found
    });
}

/// Hands the table `OEM0` to `read`, which may change it; wrong checksums are nobody's trouble: it is not read again. Once.
pub fn with_oem0(read: impl FnOnce(&mut [u8])) {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    let Some((phys, len)) = get().and_then(|acpi| acpi.oem0) else { return };
    // Relaxed: who comes second touches nothing.
    if TAKEN.swap(true, Ordering::Relaxed) {
        return;
    }
    if let Some(at) = kmap::map(phys, len, Cache::WriteBack) {
        // SAFETY: as in `bytes`, but for the writing: `read_root` kept no slice of this table, and nobody else makes one.
        read(unsafe { core::slice::from_raw_parts_mut(at as *mut u8, len) });
    }
}

/// Physical memory as bytes; firmware tables do not change while the kernel runs, but for the one that `with_oem0` lends.
pub(super) fn bytes(phys: u64, len: usize) -> Option<&'static [u8]> {
    if phys == 0 || phys.checked_add(len as u64)? > 1 << 46 {
        return None;
    }
    let at = kmap::map(phys, len, Cache::WriteBack)?;
    // SAFETY: the range was just mapped readable and is never unmapped; it is firmware memory that
    // the frame allocator does not own.
    Some(unsafe { core::slice::from_raw_parts(at as *const u8, len) })
}

fn u16_at(table: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(table.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(table: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(table.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(table: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(table.get(at..at + 8)?.try_into().ok()?))
}

pub(super) fn checksum_ok(table: &[u8]) -> bool {
    table.iter().fold(0u8, |sum, &byte| sum.wrapping_add(byte)) == 0
}

fn scan_bios() -> Option<u64> {
    const START: u64 = 0xe_0000;
    let area = bytes(START, 0x2_0000)?;
    let at = (0..area.len() - 36)
        .step_by(16)
        .find(|&at| &area[at..at + 8] == b"RSD PTR " && checksum_ok(&area[at..at + 20]))?;
    Some(START + at as u64)
}

/// One table with its header, whole.
fn table(phys: u64) -> Option<&'static [u8]> {
    let header = bytes(phys, 36)?;
    let len = u32_at(header, 4)? as usize;
    if !(36..=1 << 20).contains(&len) {
        return None;
    }
    let table = bytes(phys, len)?;
    checksum_ok(table).then_some(table)
}

impl Acpi {
    fn read_root(&mut self, rsdp: u64) -> Option<()> {
        let root = bytes(rsdp, 36)?;
        let xsdt = (*root.get(15)? >= 2).then(|| u64_at(root, 24)).flatten().filter(|&at| at != 0);
        let (list, width) = match xsdt.and_then(table) {
            Some(list) => (list, 8),
            None => (table(u64::from(u32_at(root, 16)?))?, 4),
        };
        for entry in list[36..].chunks_exact(width) {
            let phys = entry.iter().rev().fold(0u64, |sum, &byte| sum << 8 | u64::from(byte));
            let Some(table) = table(phys) else { continue };
            match &table[..4] {
                b"FACP" => self.read_fadt(table),
                b"APIC" => self.read_madt(table),
                // A seventeenth would be ignored.
                b"SSDT" => self.byte_code.try_push(table).ok(),
                b"TPM2" => self.read_tpm2(table),
                b"OEM0" => {
                    self.oem0 = Some((phys, table.len()));
                    Some(())
                }
                b"HPET" if table.get(40) == Some(&0) => {
                    self.hpet = u64_at(table, 44);
                    Some(())
                }
                _ => Some(()),
            };
        }
        Some(())
    }

    fn read_fadt(&mut self, fadt: &'static [u8]) -> Option<()> {
        let dsdt = u64_at(fadt, 140).filter(|&at| at != 0).or(u32_at(fadt, 40).map(u64::from))?;
        self.smi_command = u32_at(fadt, 48)? as u16;
        self.acpi_enable = *fadt.get(52)?;
        self.pm1a_control = u32_at(fadt, 64)? as u16;
        self.pm1b_control = u32_at(fadt, 68)? as u16;
        let flags = u32_at(fadt, 112)?;
        let timer = u32_at(fadt, 76)?;
        if timer != 0 && timer < 0x1_0000 && *fadt.get(91)? == 4 {
            self.pm_timer = Some((timer as u16, flags >> 8 & 1 != 0));
        }
        let dsdt = table(dsdt);
        self.s5 = dsdt.and_then(find_s5);
        if let Some(dsdt) = dsdt.filter(|_| !self.byte_code.is_full()) {
            self.byte_code.push(dsdt);
        }
        // RESET_REG_SUP, and a register that is really there.
        if flags >> 10 & 1 != 0 {
            self.reset = Register::read(fadt.get(116..128)?).zip(fadt.get(128).copied());
        }
        // HW_REDUCED_ACPI.
        if flags >> 20 & 1 != 0 {
            self.sleep_control = Register::read(fadt.get(244..256)?);
        }
        Some(())
    }

    fn read_tpm2(&mut self, tpm2: &'static [u8]) -> Option<()> {
        self.tpm = Some((u64_at(tpm2, 40)?, u32_at(tpm2, 48)?));
        Some(())
    }

    fn read_madt(&mut self, madt: &'static [u8]) -> Option<()> {
        let mut rest = madt.get(44..)?;
        while let [kind, len, ..] = *rest {
            let entry = rest.get(..usize::from(len))?;
            rest = rest.get(usize::from(len).max(2)..)?;
            match kind {
                0 if u32_at(entry, 4)? & 1 != 0 => {
                    let _ = self.local_apics.try_push(u32::from(*entry.get(3)?));
                }
                1 => {
                    let (address, gsi_base) = (u32_at(entry, 4)?, u32_at(entry, 8)?);
                    let _ = self.io_apics.try_push(IoApicEntry { address, gsi_base });
                }
                2 => {
                    let flags = u16_at(entry, 8)?;
                    let _ = self.overrides.try_push(Override {
                        irq: *entry.get(3)?,
                        gsi: u32_at(entry, 4)?,
                        active_low: flags & 3 == 3,
                        level: flags >> 2 & 3 == 3,
                    });
                }
                9 if u32_at(entry, 8)? & 1 != 0 => {
                    let _ = self.local_apics.try_push(u32_at(entry, 4)?);
                }
                _ => {}
            }
        }
        Some(())
    }
}

/// The sleep types of `Name (_S5, Package () { a, b, ... })` in the byte code.
fn find_s5(dsdt: &'static [u8]) -> Option<(u8, u8)> {
    let at = dsdt.windows(5).position(|w| &w[..4] == b"_S5_" && w[4] == 0x12)?;
    let package = dsdt.get(at + 5..)?;
    // The package length takes 1 to 4 bytes, as its first byte's top bits say; then the count.
    let skip = usize::from(package.first()? >> 6) + 2;
    let mut elements = package.get(skip..)?.iter();
    let mut number = || match *elements.next()? {
        0x0a => elements.next().copied(),
        small @ (0 | 1) => Some(small),
        0xff => Some(0xff),
        _ => None,
    };
    let first = number()?;
    Some((first, number().unwrap_or(first)))
}

/// A register of two bytes, or one, that the firmware's tables name.
fn register(port: u16, count: u16) -> Ports {
    // SAFETY: the tables say that it switches between power states, which is what this module does with it.
    unsafe { Ports::new(port, count) }
}

/// Whether the tables say how the machine is switched off.
pub(super) fn knows_s5() -> bool {
    get().is_some_and(|acpi| {
        acpi.s5.is_some() && (acpi.pm1a_control != 0 || acpi.sleep_control.is_some())
    })
}

/// Soft-off; returns when the tables do not say how or nothing happens.
pub(super) fn enter_s5() {
    let Some((acpi, (a, b))) = get().and_then(|acpi| Some((acpi, acpi.s5?))) else { return };
    if let Some(control) = acpi.sleep_control {
        // SLP_TYP and SLP_EN.
        control.write((a & 7) << 2 | 1 << 5);
        pause();
    }
    if acpi.pm1a_control == 0 {
        return;
    }
    if register(acpi.pm1a_control, 2).read16(0) & 1 == 0
        && acpi.smi_command != 0
        && acpi.acpi_enable != 0
    {
        register(acpi.smi_command, 1).write8(0, acpi.acpi_enable);
    }
    let value = |kind: u8| u16::from(kind & 7) << 10 | 1 << 13;
    register(acpi.pm1a_control, 2).write16(0, value(a));
    if acpi.pm1b_control != 0 {
        register(acpi.pm1b_control, 2).write16(0, value(b));
    }
    pause();
}

/// The machine goes a moment after it was told to.
fn pause() {
    for _ in 0..1_000_000 {
        crate::base::cpu::relax();
    }
}

/// Reset through the FADT's register; returns when there is none.
pub(super) fn reset() {
    if let Some((register, value)) = get().and_then(|acpi| acpi.reset) {
        register.write(value);
        pause();
    }
}
