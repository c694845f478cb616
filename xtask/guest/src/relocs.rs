//! Which words of the kernel's image hold an address of it, put into the kernel itself, which so can move its image at boot.
//!
//! The linker keeps them (`--emit-relocs`), and this writes their places into the room that its script has left, in the
//! form that `arch/x86_64/boot/kaslr.rs` reads.

use std::collections::BTreeSet;
use std::ops::Range;

use anyhow::{Context, Result, bail, ensure};
use object::elf;
use object::{Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget};

/// The room: the length of the lists in eight bytes, then the lists.
const SECTION: &str = ".relocs";
const HEAD: usize = 8;

/// Sections that are part of the image. The note has a physical address, for the loader.
const MOVED: [&str; 4] = [".text", ".rodata", ".data", ".percpu"];

/// The compiler adds constants to addresses, which may lead so far out of the image: its end is rounded up to large pages.
const NEAR: u64 = 2 << 20;

/// The places of one image, from its first byte.
#[derive(Debug, Default, PartialEq, Eq)]
struct Places {
    /// Of words of four bytes, which are extended with their sign.
    narrow: BTreeSet<u64>,
    /// Of words of eight bytes.
    wide: BTreeSet<u64>,
}

/// Writes both lists into the kernel's image.
pub fn put_into(elf: &mut [u8]) -> Result<()> {
    let (range, lists) = {
        let file = object::File::parse(&*elf)?;
        let section = file.section_by_name(SECTION).context("the kernel has no .relocs")?;
        let (start, room) = section.file_range().context(".relocs is not in the file")?;
        let start = usize::try_from(start)?;
        let places = places(&file)?;
        let lists = [encode(&places.narrow), encode(&places.wide)].concat();
        (start..start + usize::try_from(room)?, lists)
    };
    ensure!(
        HEAD + lists.len() <= range.len(),
        "the places of addresses in the kernel take {} bytes: enlarge .relocs in linker.ld",
        lists.len()
    );
    let room = &mut elf[range];
    room[..HEAD].copy_from_slice(&(lists.len() as u64).to_le_bytes());
    room[HEAD..HEAD + lists.len()].copy_from_slice(&lists);
    Ok(())
}

/// The mark for `FAR_STEP` bytes in which there is no place.
const FAR: u16 = u16::MAX;
const FAR_STEP: u64 = 0x8000;

/// Each distance from the place before in two bytes, and a distance of 0.
fn encode(places: &BTreeSet<u64>) -> Vec<u8> {
    let mut list = Vec::new();
    let mut last = 0;
    for &place in places {
        let mut distance = place - last;
        while distance >= u64::from(FAR) {
            list.push(FAR);
            distance -= FAR_STEP;
        }
        list.push(distance as u16);
        last = place;
    }
    list.push(0);
    list.into_iter().flat_map(u16::to_le_bytes).collect()
}

fn symbol(file: &object::File<'_>, name: &str) -> Result<u64> {
    let found = file.symbols().find(|symbol| symbol.name() == Ok(name));
    Ok(found.with_context(|| format!("the kernel has no {name}"))?.address())
}

/// Every place, each of which holds an address of the image now.
fn places(file: &object::File<'_>) -> Result<Places> {
    let image = symbol(file, "__kernel_start")?..symbol(file, "__kernel_end")?;
    let mut places = Places::default();
    for name in MOVED {
        let section = file.section_by_name(name).with_context(|| format!("no {name}"))?;
        for (at, relocation) in section.relocations() {
            let RelocationFlags::Elf { r_type } = relocation.flags() else { bail!("no ELF") };
            let is_absolute = match relocation.target() {
                RelocationTarget::Symbol(index) => {
                    file.symbol_by_index(index)?.section() == object::SymbolSection::Absolute
                }
                _ => false,
            };
            let place = at - image.start;
            match r_type {
                _ if is_absolute => {}
                elf::R_X86_64_NONE
                | elf::R_X86_64_PC32
                | elf::R_X86_64_PLT32
                | elf::R_X86_64_GOTPCREL => {}
                // Of the code before paging, which uses physical addresses.
                elf::R_X86_64_32 => {}
                elf::R_X86_64_32S => drop(places.narrow.insert(place)),
                elf::R_X86_64_64 => drop(places.wide.insert(place)),
                other => bail!("a relocation of type {other} in {name} at {at:#x}"),
            }
        }
    }
    let table = symbol(file, "__got_start")?..symbol(file, "__got_end")?;
    places.wide.extend(table.step_by(8).map(|at| at - image.start));
    check(file, &image, &mut places)?;
    Ok(places)
}

/// What is in each place is an address of the image; entries of the table of addresses may be empty, and stay so.
fn check(file: &object::File<'_>, image: &Range<u64>, places: &mut Places) -> Result<()> {
    let holds = |value: u64| (image.start - NEAR..image.end + NEAR).contains(&value);
    for &place in &places.narrow {
        let word = bytes::<4>(file, image.start + place)?;
        let value = i64::from(i32::from_le_bytes(word)) as u64;
        ensure!(holds(value), "{:#x} holds {value:#x}, no address", image.start + place);
    }
    let mut empty = Vec::new();
    for &place in &places.wide {
        match u64::from_le_bytes(bytes::<8>(file, image.start + place)?) {
            0 => empty.push(place),
            value => {
                ensure!(holds(value), "{:#x} holds {value:#x}, no address", image.start + place)
            }
        }
    }
    places.wide.retain(|place| !empty.contains(place));
    Ok(())
}

/// The bytes at an address of the image.
fn bytes<const N: usize>(file: &object::File<'_>, address: u64) -> Result<[u8; N]> {
    for section in file.sections().filter(|section| MOVED.contains(&section.name().unwrap_or(""))) {
        if let Some(data) = section.data_range(address, N as u64)? {
            return Ok(data.try_into()?);
        }
    }
    bail!("nothing is at {address:#x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_distances_and_an_end() {
        assert_eq!(encode(&BTreeSet::new()), [0, 0]);
        assert_eq!(encode(&BTreeSet::from([1, 9, 0x209])), [1, 0, 8, 0, 0, 2, 0, 0]);
        let far = BTreeSet::from([0xfffe, 0xfffe + 0xffff, 0xfffe + 0xffff + 0x2_0000]);
        let lists = encode(&far);
        let words: Vec<u16> =
            lists.chunks(2).map(|two| u16::from_le_bytes([two[0], two[1]])).collect();
        assert_eq!(words, [0xfffe, FAR, 0x7fff, FAR, FAR, FAR, 0x8000, 0]);
    }
}
