//! What a root may be made of: tars, OCI images, ready archives; what is refused; and what comes back.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use alea_tests::in_turn;
use xtask_host::paths;

use crate::{KERNELS, ended, on, root, run, text};

/// Files of a tar, each with its name, type and contents.
fn tar(entries: &[(&str, tar::EntryType, &str)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, kind, text) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(*kind);
        header.set_mode(0o755);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_size(0);
        // As a hostile tar has it: the crate itself would refuse some of these names.
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        let is_file = *kind == tar::EntryType::Regular;
        if is_file {
            header.set_size(text.len() as u64);
        } else {
            header.as_old_mut().linkname[..text.len()].copy_from_slice(text.as_bytes());
        }
        header.set_cksum();
        builder.append(&header, if is_file { text.as_bytes() } else { b"" }).unwrap();
    }
    builder.into_inner().unwrap()
}

/// Packs names of a folder with the machine's own tar.
fn tar_folder(folder: &Path, into: &Path, names: &[&str]) {
    let mut tar = Command::new("tar");
    tar.arg("-C").arg(folder).arg("-cf").arg(into).args(names);
    assert!(tar.status().unwrap().success());
}

fn pack(program: &str, from: &Path) {
    let done = Command::new(program).args(["-k", "-q"]).arg(from).status().unwrap();
    assert!(done.success(), "{program}");
}

#[test]
fn tars_are_roots_however_they_are_compressed() {
    let root = root();
    let folder = tempfile::tempdir().unwrap();
    let tar = folder.path().join("root.tar");
    tar_folder(root.path(), &tar, &["."]);
    let mut names = vec!["root.tar"];
    for (program, name) in
        [("gzip", "root.tar.gz"), ("xz", "root.tar.xz"), ("zstd", "root.tar.zst")]
    {
        pack(program, &tar);
        names.push(name);
    }
    for name in names {
        let path = folder.path().join(name);
        let output = on(&path, "alea", &[], &["cat", "/srv/data"]);
        ended(&output, 0);
        assert_eq!(text(&output.stdout), "of my own\n", "{name}");
        let whole = fs::read(&path).unwrap();
        let refused = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            let output = on(&path, "alea", &[], &["cat", "/srv/data"]);
            ended(&output, 125);
            let errors = text(&output.stderr);
            assert!(errors.starts_with("error: "), "{name}: {errors}");
        };
        // Cut off, as by a full disk.
        refused(&whole[..whole.len() * 9 / 10]);
        if name.ends_with(".zst") {
            // Another checksum than that of the contents.
            let (last, before) = whole.split_last().unwrap();
            refused(&[before, &[last ^ 1]].concat());
        }
    }
}

/// CAP_NET_RAW, permitted and effective, as setcap writes it.
const NET_RAW: [u8; 20] = [1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

#[test]
fn capabilities_of_files_survive_the_packing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("root.tar");
    let mut builder = tar::Builder::new(fs::File::create(&path).unwrap());
    let program = fs::read(paths::busybox()).unwrap();
    for name in ["busybox", "busybox-raw"] {
        let mut header = tar::Header::new_ustar();
        header.set_mode(0o755);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_size(program.len() as u64);
        if name == "busybox-raw" {
            let attributes = [
                ("SCHILY.xattr.security.capability", &NET_RAW[..]),
                ("SCHILY.xattr.user.note", b"kept"),
                ("SCHILY.xattr.system.other", b"not kept"),
            ];
            builder.append_pax_extensions(attributes).unwrap();
        }
        builder.append_data(&mut header, name, &program[..]).unwrap();
    }
    drop(builder.into_inner().unwrap());
    for kernel in KERNELS {
        for (program, capabilities) in [("/busybox", 0), ("/busybox-raw", 0x2000)] {
            let words = [program, "grep", "CapEff", "/proc/self/status"];
            let output = on(&path, kernel, &["--user", "1000"], &words);
            ended(&output, 0);
            let wanted = format!("CapEff:\t{capabilities:016x}\n");
            assert_eq!(text(&output.stdout), wanted, "{kernel}: {program}");
            assert_eq!(text(&output.stderr), "", "{kernel}: {program}");
        }
    }
}

#[test]
fn a_tar_that_leads_out_of_the_root_is_refused() {
    use tar::EntryType::{Link, Regular};
    let folder = tempfile::tempdir().unwrap();
    for (nth, (entry, why)) in [
        (("/etc/passwd", Regular, "x"), "absolute"),
        (("../x", Regular, "x"), "leads out"),
        (("a/../../x", Regular, "x"), "leads out"),
        (("a", Link, "../../etc/passwd"), "leads out"),
        (("a", Link, "nowhere"), "not there"),
    ]
    .into_iter()
    .enumerate()
    {
        let path = folder.path().join(format!("{nth}.tar"));
        fs::write(&path, tar(&[entry])).unwrap();
        let output = on(&path, "alea", &[], &["true"]);
        ended(&output, 125);
        assert!(text(&output.stderr).contains(why), "{entry:?}: {}", text(&output.stderr));
    }
    for (name, bytes) in [("empty", &b""[..]), ("text", b"no tar at all\n")] {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        ended(&on(&path, "alea", &[], &["true"]), 125);
    }
    ended(&on(&folder.path().join("gone"), "alea", &[], &["true"]), 125);
}

/// Root has its files read whatever their mode is, so here it gives that up.
#[test]
fn a_file_that_may_not_be_read_is_named() {
    let root = root();
    let at = |name: &str| root.path().join("srv").join(name);
    fs::write(at("secret"), "x").unwrap();
    fs::create_dir(at("closed")).unwrap();
    for name in ["secret", "closed"] {
        fs::set_permissions(at(name), fs::Permissions::from_mode(0o000)).unwrap();
    }
    let program = env!("CARGO_BIN_EXE_alea-run");
    let mut command = match fs::metadata(root.path()).unwrap().uid() {
        0 => {
            let mut command = Command::new("setpriv");
            command.args(["--bounding-set", "-dac_override,-dac_read_search", program]);
            command
        }
        _ => Command::new(program),
    };
    let output = command.arg("--root").arg(root.path()).args(["--", "true"]).output().unwrap();
    fs::set_permissions(at("closed"), fs::Permissions::from_mode(0o755)).unwrap();
    ended(&output, 125);
    let said = text(&output.stderr);
    assert!(said.contains("srv/secret") && said.contains("srv/closed"), "{said}");
}

/// Writes a blob of a layout; its digest and size as a descriptor has them.
fn blob(layout: &Path, bytes: &[u8]) -> String {
    use sha2::Digest;
    let sum: String = sha2::Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect();
    fs::create_dir_all(layout.join("blobs/sha256")).unwrap();
    fs::write(layout.join("blobs/sha256").join(&sum), bytes).unwrap();
    format!("\"digest\": \"sha256:{sum}\", \"size\": {}", bytes.len())
}

#[test]
fn an_oci_image_runs_as_it_wants_to() {
    use tar::EntryType::Regular;
    let root = root();
    let folder = tempfile::tempdir().unwrap();
    let layout = folder.path().join("layout");
    let base = folder.path().join("base.tar");
    tar_folder(root.path(), &base, &["."]);
    let mut layers = vec![blob(&layout, &fs::read(&base).unwrap())];
    let second = tar(&[
        ("srv/.wh.data", Regular, ""),
        ("home/.wh..wh..opq", Regular, ""),
        ("home/new", Regular, "new"),
    ]);
    layers.push(blob(&layout, &second));
    let config = r#"{"config": {"Env": ["A=image", "B=image"], "WorkingDir": "/home", "User": "ann",
        "Entrypoint": ["sh", "-c"], "Cmd": ["echo $A $B; id -u; pwd; ls /home /srv"]}}"#;
    let config = blob(&layout, config.as_bytes());
    let layers: Vec<String> = layers.iter().map(|layer| format!("{{{layer}}}")).collect();
    let manifest = format!("{{\"config\": {{{config}}}, \"layers\": [{}]}}", layers.join(", "));
    let manifest = blob(&layout, manifest.as_bytes());
    fs::write(layout.join("index.json"), format!("{{\"manifests\": [{{{manifest}}}]}}")).unwrap();
    let wanted = "image mine\n1000\n/home\n/home:\nnew\n\n/srv:\n";
    let archive = folder.path().join("image.tar");
    tar_folder(&layout, &archive, &["index.json", "blobs"]);
    for image in [&layout, &archive] {
        let mut command = run("alea", &["--env", "B=mine", "--root", image.to_str().unwrap()]);
        let output = in_turn(|| command.output().unwrap());
        ended(&output, 0);
        assert_eq!(text(&output.stdout), wanted);
    }
    let other =
        on(&layout, "alea", &["--user", "0", "--workdir", "/"], &["sh", "-c", "id -u; pwd"]);
    assert_eq!(text(&other.stdout), "0\n/\n");
    // A layer that is not what the manifest says.
    let first = &layers[1];
    let sum = first.split("sha256:").nth(1).unwrap().split('"').next().unwrap();
    fs::write(layout.join("blobs/sha256").join(sum), "other").unwrap();
    let output = on(&layout, "alea", &[], &["true"]);
    ended(&output, 125);
    assert!(text(&output.stderr).contains("do not have this SHA-256"));
}

#[test]
fn files_come_back() {
    let root = root();
    let over = tempfile::tempdir().unwrap();
    fs::write(over.path().join("added"), "by the overlay\n").unwrap();
    let to = tempfile::tempdir().unwrap();
    for kernel in KERNELS {
        let [folder, file] = ["folder", "file"].map(|name| to.path().join(kernel).join(name));
        let script = "mkdir -p /o/d && cat /added > /o/d/f && chmod 4750 /o/d/f && ln -s /etc /o/l && \
            dd if=/dev/zero of=/o/big bs=1M count=5 status=none; exit 3";
        let [first, second] =
            [format!("/o:{}", folder.display()), format!("/added:{}", file.display())];
        let over = over.path().to_str().unwrap();
        let options = ["--overlay", over, "--out", &first, "--out", &second];
        let output = on(root.path(), kernel, &options, &["sh", "-c", script]);
        ended(&output, 3);
        assert_eq!(fs::read_to_string(folder.join("d/f")).unwrap(), "by the overlay\n");
        assert_eq!(fs::metadata(folder.join("d/f")).unwrap().permissions().mode() & 0o7777, 0o750);
        assert_eq!(fs::read_link(folder.join("l")).unwrap(), Path::new("/etc"));
        assert_eq!(fs::read(folder.join("big")).unwrap(), vec![0; 5 << 20]);
        assert_eq!(fs::read_to_string(file.join("added")).unwrap(), "by the overlay\n");
    }
    let output = on(root.path(), "alea", &["--out", "/nowhere:x"], &["sh", "-c", "exit 0"]);
    ended(&output, 125);
    assert!(text(&output.stderr).contains("/nowhere"), "{}", text(&output.stderr));
    for bad in ["relative:x", "/only", "/x:"] {
        ended(&on(root.path(), "alea", &["--out", bad], &["true"]), 125);
    }
}

/// The root may fill most of the memory, and an initramfs may be of Debian's own form.
#[test]
fn a_root_may_take_most_of_the_memory() {
    let root = root();
    let script = "dd if=/dev/zero of=/fill bs=1M count=170 status=none && echo filled; \
        dd if=/dev/zero of=/more bs=1M count=170 2>&1 | head -n 1";
    let output = on(root.path(), "alea", &["--memory", "256M"], &["sh", "-c", script]);
    ended(&output, 0);
    let told = text(&output.stdout);
    assert!(told.starts_with("filled\n") && told.contains("No space left"), "{told}");
}

/// Or as much as one says.
#[test]
fn a_root_may_take_what_rootflags_says() {
    let root = root();
    let script = "dd if=/dev/zero of=/fill bs=1M count=100 2>&1 | busybox grep -c 'No space left'";
    for (options, status) in [("size=40M", 0), ("size=200M", 1)] {
        let append = format!("rootflags={options}");
        let options = ["--memory", "256M", "--append", &append];
        ended(&on(root.path(), "alea", &options, &["sh", "-c", script]), status);
    }
}

#[test]
fn an_initramfs_of_ones_own_is_a_root_on_both_kernels() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("i.cpio");
    let mut tree = xtask_guest::initramfs::Tree::new();
    tree.dir("bin", 0o755).host_file("bin/busybox", 0o755, &paths::busybox()).unwrap();
    tree.symlink("bin/sh", "busybox").file("data", 0o600, "of my own\n");
    fs::write(&path, tree.archive()).unwrap();
    for kernel in KERNELS {
        let script = "busybox cat /data; echo to err >&2; exit 6";
        let words = ["--initrd", path.to_str().unwrap(), "--", "sh", "-c", script];
        let output = in_turn(|| run(kernel, &words).output().unwrap());
        ended(&output, 6);
        assert_eq!(text(&output.stdout), "of my own\n", "{kernel}");
        assert_eq!(text(&output.stderr), "to err\n", "{kernel}");
    }
}

#[test]
fn an_initramfs_may_be_compressed_with_xz_and_zstd() {
    let folder = tempfile::tempdir().unwrap();
    let plain = folder.path().join("i.cpio");
    let mut tree = xtask_guest::initramfs::Tree::new();
    tree.host_file("bin/busybox", 0o755, &paths::busybox()).unwrap().symlink("bin/sh", "busybox");
    tree.file("zeros", 0o644, vec![0; 3 << 20]);
    fs::write(&plain, tree.archive()).unwrap();
    for (program, options, name) in [
        ("xz", &["--check=crc32"][..], "i.cpio.xz"),
        ("xz", &["-9e", "-f"], "i.cpio.xz"),
        ("zstd", &["-19", "-q"], "i.cpio.zst"),
        ("gzip", &["-9"], "i.cpio.gz"),
    ] {
        let packed = Command::new(program).arg("-k").args(options).arg(&plain).status().unwrap();
        assert!(packed.success());
        let path = folder.path().join(name);
        let words =
            ["--initrd", path.to_str().unwrap(), "--", "sh", "-c", "busybox wc -c < /zeros"];
        let output = in_turn(|| run("alea", &words).output().unwrap());
        ended(&output, 0);
        assert_eq!(text(&output.stdout).trim(), (3 << 20).to_string(), "{name}");
        let whole = fs::read(&path).unwrap();
        // The last byte of a zstd frame is one of its checksum.
        let last = (program == "zstd").then_some(whole.len() - 1);
        for place in [Some(whole.len() / 2), last].into_iter().flatten() {
            let mut bytes = whole.clone();
            bytes[place] ^= 0x55;
            fs::write(&path, &bytes).unwrap();
            let output = in_turn(|| run("alea", &words).output().unwrap());
            ended(&output, 125);
            assert!(text(&output.stderr).contains("unpacking failed"), "{}", text(&output.stderr));
        }
    }
}
