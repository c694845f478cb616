//! Compiles and links the image: a shared object without relocations.
//!
//! The same sources once more, by the compiler that cargo uses, for the target that the crate is built
//! for; linked by the linker that comes with it, or by the system's. Fails if the image is not what the
//! kernel may map: it reads headers, so that a broken linker script is found here and not in a guest.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const NAME: &str = "linux-vdso.so.1";

/// The routines that the kernel asks for a known answer before any program uses them, and the names of their places.
const ROUTINES: [(&str, &str); 2] =
    [("alea_vdso_keystream_sse2", "SSE2"), ("alea_vdso_keystream_avx2", "AVX2")];

fn main() {
    for input in ["build.rs", "src", "vdso.ld"] {
        println!("cargo::rerun-if-changed={input}");
    }
    let variable = |name: &str| env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"));
    let out = PathBuf::from(variable("OUT_DIR"));
    let image = out.join(NAME);
    let target = variable("TARGET");
    if !target.starts_with("x86_64-") || !(target.contains("linux") || target.contains("none")) {
        // Elsewhere the crate is only there to be checked and documented.
        fs::write(&image, []).expect("the output folder can be written");
        write_places(&out, |_| 0);
        return;
    }
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let rustc = variable("RUSTC");
    let object = out.join("image.o");
    let mut compile = Command::new(&rustc);
    compile
        .arg(root.join("src/lib.rs"))
        .args(["--crate-name", "alea_vdso", "--crate-type", "lib", "--edition", "2024"])
        .args(["--target", &target, "--cfg", "alea_vdso_image", "-D", "warnings"])
        .args(["-C", "opt-level=2", "-C", "codegen-units=1", "-C", "panic=abort"])
        // As in a program, so that calls inside the image need no table of addresses.
        .args(["-C", "relocation-model=pie", "-C", "force-unwind-tables=yes"])
        .arg(format!("--emit=obj={}", object.display()));
    run(&mut compile);
    let mut link = linker(&rustc, &variable("HOST"));
    link.args(["-shared", "-soname", NAME, "--hash-style=both", "--build-id=sha1"])
        .args(["--eh-frame-hdr", "-Bsymbolic", "-z", "defs", "-z", "text", "-z", "noexecstack"])
        .args(["-z", "max-page-size=4096", "--gc-sections", "-T"])
        .arg(root.join("vdso.ld"))
        .arg("-o")
        .arg(&image)
        .arg(&object);
    run(&mut link);
    let bytes = fs::read(&image).expect("the linker wrote the image");
    write_places(&out, |name| {
        symbol(&bytes, name).unwrap_or_else(|| panic!("{}: no {name}", image.display()))
    });
    match check(&bytes) {
        Ok(len) => fs::write(&image, without_sections(&bytes[..len])),
        Err(fault) => panic!("{}: {fault}", image.display()),
    }
    .expect("the output folder can be written");
}

/// Writes where in the image each routine lies, as constants.
fn write_places(out: &Path, place: impl Fn(&str) -> u64) {
    let line = |(symbol, name)| {
        format!("/// Where `{symbol}` lies.\npub const {name}: usize = {:#x};\n", place(symbol))
    };
    let text: String = ROUTINES.map(line).concat();
    fs::write(out.join("routines.rs"), text).expect("the output folder can be written");
}

/// The value of a symbol, by the image's table of sections, which is cut off later.
fn symbol(image: &[u8], wanted: &str) -> Option<u64> {
    const SYMTAB: u64 = 2;
    let number = |at: usize, len: usize| {
        let bytes = image.get(at..at + len)?;
        Some(bytes.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte)))
    };
    let (sections, count) = (number(40, 8)? as usize, number(60, 2)? as usize);
    // A section's offset and length.
    let section = |n: usize| {
        let at = sections + n * 64;
        Some((number(at + 24, 8)? as usize, number(at + 32, 8)? as usize))
    };
    let table = (0..count).find(|n| number(sections + n * 64 + 4, 4) == Some(SYMTAB))?;
    let (symbols, len) = section(table)?;
    let (names, _) = section(number(sections + table * 64 + 40, 4)? as usize)?;
    (0..len / 24).map(|n| symbols + n * 24).find_map(|at| {
        let name = image.get(names + number(at, 4)? as usize..)?;
        let name = name.split(|byte| *byte == 0).next()?;
        (name == wanted.as_bytes()).then(|| number(at + 8, 8)).flatten()
    })
}

/// What is mapped: the segment, whose header no longer tells of sections, which lay behind it.
fn without_sections(segment: &[u8]) -> Vec<u8> {
    let mut bytes = segment.to_vec();
    for range in [40..48, 60..64] {
        bytes[range].fill(0);
    }
    bytes
}

/// The linker of the toolchain, else one of the system's.
fn linker(rustc: &str, host: &str) -> Command {
    let sysroot = Command::new(rustc).args(["--print", "sysroot"]).output();
    let sysroot = sysroot.map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned());
    if let Ok(sysroot) = sysroot {
        let lld = Path::new(&sysroot).join("lib/rustlib").join(host).join("bin/rust-lld");
        if lld.exists() {
            let mut command = Command::new(lld);
            command.args(["-flavor", "gnu"]);
            return command;
        }
    }
    let there = |name: &&str| Command::new(name).arg("--version").output().is_ok();
    let name = ["ld.lld", "ld"].into_iter().find(there);
    Command::new(name.unwrap_or("ld"))
}

fn run(command: &mut Command) {
    let status = command.status().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success(), "{command:?} failed");
}

/// What the kernel relies on: one segment at zero that is the whole file and cannot be written, nothing
/// to relocate: the segment's length.
fn check(image: &[u8]) -> Result<usize, String> {
    const LOAD: u64 = 1;
    const DYNAMIC: u64 = 2;
    /// DT_PLTRELSZ, DT_RELA, DT_REL, DT_TEXTREL, DT_JMPREL, DT_RELR, DT_INIT, DT_NEEDED.
    const FORBIDDEN: [u64; 8] = [2, 7, 17, 22, 23, 36, 12, 1];
    let number = |at: usize, len: usize| {
        let bytes = image.get(at..at + len).ok_or("it ends too early")?;
        Ok::<u64, String>(bytes.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte)))
    };
    let (phdrs, count) = (number(32, 8)? as usize, number(56, 2)? as usize);
    let (mut loads, mut dynamics, mut len) = (0, 0, 0);
    for at in (0..count).map(|n| phdrs + n * 56) {
        let (kind, flags) = (number(at, 4)?, number(at + 4, 4)?);
        let (offset, address) = (number(at + 8, 8)?, number(at + 16, 8)?);
        let (in_file, in_memory) = (number(at + 32, 8)?, number(at + 40, 8)?);
        if kind == LOAD {
            loads += 1;
            len = in_file as usize;
            if (flags, offset, address) != (5, 0, 0) || in_file != in_memory || len > image.len() {
                return Err(format!("segment {flags:#x} {offset:#x} {address:#x} {in_memory:#x}"));
            }
        } else if kind == DYNAMIC {
            dynamics += 1;
            for entry in (0..in_file as usize / 16).map(|n| offset as usize + n * 16) {
                let tag = number(entry, 8)?;
                if FORBIDDEN.contains(&tag) {
                    return Err(format!("dynamic entry {tag}"));
                }
            }
        }
    }
    match (loads, dynamics) {
        (1, 1) => Ok(len),
        _ => Err(format!("{loads} segments to load, {dynamics} dynamic ones")),
    }
}
