//! Debian packages: installed when the machine itself needs them, else downloaded and extracted.
//!
//! Everything but an installation stays below `target/alea/apt`: the lists, the downloads, and on
//! Debian 12 a source list of our own, because what is needed lies in its backports. `/etc/apt` is
//! only read. apt checks every signature and checksum.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use xtask_host::{paths, process};

const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
const DEFAULT_MIRROR: &str = "http://deb.debian.org/debian";

/// The one release whose own QEMU and Linux are too old.
const NEEDS_BACKPORTS: &str = "bookworm";

/// apt with its private folders.
#[derive(Clone)]
pub struct Apt {
    options: Vec<OsString>,
    /// The release that `-t` prefers.
    target: Option<String>,
}

impl Apt {
    /// Prepares the private folders and reads the package lists.
    pub fn open() -> Result<Self> {
        if process::which("apt-get").is_none() {
            bail!(
                "there is no apt-get here: install QEMU >= {} (qemu-system-x86_64) and gcc with a \
                 static libc by your system's own means, and name the rest with ALEA_BUSYBOX=FILE \
                 (a static BusyBox) and ALEA_LINUX=FILE (a bzImage to compare with)",
                xtask_guest::qemu::OLDEST
            );
        }
        let dir = paths::alea().join("apt");
        let mut options = private_folders(&dir)?;
        let release = Release::read()?;
        let mut target = None;
        if release.codename == NEEDS_BACKPORTS {
            let sources = dir.join("sources.list");
            std::fs::write(&sources, private_sources(&machine_sources(), &release.codename))?;
            options.extend(option("Dir::Etc::sourcelist", &sources));
            options.extend(option("Dir::Etc::sourceparts", &"-"));
            target = Some(format!("{NEEDS_BACKPORTS}-backports"));
        }
        let apt = Self { options, target };
        process::run("reading the package lists", apt.command("apt-get").arg("update"))?;
        Ok(apt)
    }

    /// apt that knows Debian's `release` and nothing else, whatever this machine runs: to download
    /// its packages, in source and binary form, and never to install one.
    pub fn of_release(release: &str) -> Result<Self> {
        if process::which("apt-get").is_none() {
            bail!("there is no apt-get here, and Debian's packages come through it");
        }
        if !Path::new(KEYRING).exists() {
            bail!("{KEYRING} is missing: install the package debian-archive-keyring");
        }
        let dir = paths::alea().join(format!("apt-{release}"));
        let mut options = private_folders(&dir)?;
        let sources = dir.join("sources.list");
        std::fs::write(&sources, release_sources(&machine_sources(), release))?;
        options.extend(option("Dir::Etc::sourcelist", &sources));
        options.extend(option("Dir::Etc::sourceparts", &"-"));
        let status = dir.join("status");
        std::fs::write(&status, "")?;
        options.extend(option("Dir::State::status", &status));
        let apt = Self { options, target: None };
        let mut update = apt.command("apt-get");
        // Without this a mirror that does not answer is a warning, and the old lists are used.
        update.args(["-o", "APT::Update::Error-Mode=any", "update"]);
        process::run(&format!("reading the package lists of Debian {release}"), &mut update)?;
        Ok(apt)
    }

    /// Installs `packages`, or fails with the one line that a person with rights must type.
    pub fn install(&self, packages: &[&str]) -> Result<()> {
        let mut words: Vec<OsString> = vec!["apt-get".into()];
        words.extend(self.options.iter().cloned());
        words.extend(["install", "-y", "-q", "--no-install-recommends"].map(OsString::from));
        if let Some(target) = &self.target {
            words.extend(["-t".into(), OsString::from(target)]);
        }
        words.extend(packages.iter().map(OsString::from));
        let noninteractive = "DEBIAN_FRONTEND=noninteractive";
        let mut command;
        if is_root() {
            command = Command::new("env");
        } else {
            command = Command::new("sudo");
            command.arg("-n").arg("env");
        }
        command.arg(noninteractive).args(&words);
        if !is_root() && !has_sudo() {
            bail!("{}", what_to_type(&words));
        }
        process::run(&format!("installing {}", packages.join(", ")), &mut command)
    }

    /// Downloads the package `name` and extracts it below `into`; nothing is installed.
    pub fn extract(&self, name: &str, into: &Path) -> Result<()> {
        let dir = tempfile::tempdir_in(paths::alea())?;
        let mut download = self.command("apt-get");
        download.current_dir(dir.path()).args(["download", "-q"]);
        if let Some(target) = &self.target {
            download.args(["-t", target]);
        }
        process::run(&format!("downloading {name}"), download.arg(name))?;
        let deb = std::fs::read_dir(dir.path())?.next().context("apt-get downloaded nothing")??;
        let mut unpack = Command::new("dpkg-deb");
        process::run(&format!("extracting {name}"), unpack.arg("-x").arg(deb.path()).arg(into))
    }

    /// Downloads the source package `name` into the folder `into`, which must exist, and returns its
    /// `.dsc`. apt compares every file with the checksum in the signed lists.
    pub fn source(&self, name: &str, into: &Path) -> Result<PathBuf> {
        let mut download = self.command("apt-get");
        download.current_dir(into).args(["source", "--download-only", "-q", name]);
        process::run(&format!("downloading the source of {name}"), &mut download)?;
        let files = std::fs::read_dir(into)?.flatten().map(|entry| entry.path());
        let mut dsc = files.filter(|file| file.extension().is_some_and(|e| e == "dsc"));
        dsc.next().context("apt-get downloaded no .dsc")
    }

    /// The control stanzas of all versions of `name`; empty when there is no such package.
    pub fn show(&self, name: &str) -> String {
        process::output(self.command("apt-cache").args(["show", name])).unwrap_or_default()
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.args(&self.options).env("LC_ALL", "C.UTF-8");
        command
    }
}

fn option(key: &str, value: &dyn AsRef<Path>) -> [OsString; 2] {
    let mut option = OsString::from(format!("{key}="));
    option.push(value.as_ref());
    [OsString::from("-o"), option]
}

/// Makes apt's folders below `dir`, and the options that name them.
fn private_folders(dir: &Path) -> Result<Vec<OsString>> {
    for sub in ["lists/partial", "cache/archives/partial"] {
        std::fs::create_dir_all(dir.join(sub))?;
    }
    let mut options: Vec<OsString> = Vec::new();
    options.extend(option("Dir::State::lists", &dir.join("lists")));
    options.extend(option("Dir::Cache", &dir.join("cache")));
    // Cache files written as root could not be replaced by the user later.
    options.extend(option("Dir::Cache::pkgcache", &""));
    options.extend(option("Dir::Cache::srcpkgcache", &""));
    options.extend(option("DPkg::Lock::Timeout", &"120"));
    options.extend(option("Acquire::Retries", &"3"));
    if is_root() {
        // The unprivileged user `_apt` may not be able to reach this folder.
        options.extend(option("APT::Sandbox::User", &"root"));
    }
    Ok(options)
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn has_sudo() -> bool {
    process::which("sudo").is_some()
        && process::output(Command::new("sudo").args(["-n", "true"])).is_ok()
}

/// For a user who may not install packages: the line that does it.
fn what_to_type(words: &[OsString]) -> String {
    let (who, program) = match process::which("sudo") {
        Some(_) => ("type this line", Some("sudo")),
        None => ("have this line typed as root", None),
    };
    let mut words = program.map(OsString::from).into_iter().chain(words.iter().cloned());
    let mut typed = Command::new(words.next().unwrap_or_default());
    typed.args(words);
    format!("packages are missing; {who}, then try again:\n{}", process::show(&typed))
}

/// The distribution this machine runs.
struct Release {
    codename: String,
}

impl Release {
    fn read() -> Result<Self> {
        let text = std::fs::read_to_string("/etc/os-release").context("/etc/os-release")?;
        Ok(Self { codename: os_release_field(&text, "VERSION_CODENAME").unwrap_or_default() })
    }
}

fn os_release_field(text: &str, key: &str) -> Option<String> {
    let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))?;
    Some(value.trim_matches('"').to_owned())
}

/// All of the machine's own apt sources, one-line style and deb822 style.
fn machine_sources() -> Vec<Source> {
    let mut files: Vec<PathBuf> = vec!["/etc/apt/sources.list".into()];
    if let Ok(entries) = std::fs::read_dir("/etc/apt/sources.list.d") {
        files.extend(entries.flatten().map(|entry| entry.path()));
    }
    files.sort();
    let mut sources = Vec::new();
    for file in files {
        let Ok(text) = std::fs::read_to_string(&file) else { continue };
        match file.extension().and_then(|extension| extension.to_str()) {
            Some("list") => sources.extend(parse_one_line(&text)),
            Some("sources") => sources.extend(parse_deb822(&text)),
            _ => {}
        }
    }
    sources
}

/// One place that packages come from.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Source {
    /// What stands in brackets in one-line style, if anything.
    options: String,
    uri: String,
    suite: String,
    components: String,
}

impl Source {
    fn line(&self) -> String {
        let options = match self.options.as_str() {
            "" if Path::new(KEYRING).exists() => format!("[signed-by={KEYRING}] "),
            "" => String::new(),
            options => format!("[{options}] "),
        };
        format!("deb {options}{} {} {}\n", self.uri, self.suite, self.components)
    }
}

/// The machine's sources for `codename`, and the backports from the same mirror.
fn private_sources(machine: &[Source], codename: &str) -> String {
    let ours = |source: &&Source| {
        source.suite == codename || source.suite.starts_with(&format!("{codename}-"))
    };
    let mut list: Vec<Source> = machine.iter().filter(ours).cloned().collect();
    let main = list.iter().find(|source| source.suite == codename).cloned();
    let main = main.unwrap_or_else(|| {
        let source = Source {
            options: String::new(),
            uri: DEFAULT_MIRROR.into(),
            suite: codename.into(),
            components: "main".into(),
        };
        list.push(source.clone());
        source
    });
    let backports = format!("{codename}-backports");
    if !list.iter().any(|source| source.suite == backports) {
        list.push(Source { suite: backports, components: "main".into(), ..main });
    }
    list.dedup();
    list.iter().map(Source::line).collect()
}

/// The line of sources.list(5) for the binary packages of `release`, from the Debian mirror that this machine uses.
pub fn binary_source(release: &str) -> String {
    release_source("deb", &machine_sources(), release)
}

/// Binary and source packages of `release`.
fn release_sources(machine: &[Source], release: &str) -> String {
    ["deb", "deb-src"].map(|kind| release_source(kind, machine, release)).concat()
}

fn release_source(kind: &str, machine: &[Source], release: &str) -> String {
    let is_debian = |uri: &str| uri.trim_end_matches('/').ends_with("/debian");
    let mirror = machine.iter().map(|source| source.uri.as_str()).find(|uri| is_debian(uri));
    let mirror = mirror.unwrap_or(DEFAULT_MIRROR);
    format!("{kind} [signed-by={KEYRING}] {mirror} {release} main\n")
}

fn parse_one_line(text: &str) -> Vec<Source> {
    let parse = |line: &str| {
        let line = line.split('#').next()?.trim();
        let rest = line.strip_prefix("deb ")?.trim_start();
        let (options, rest) = match rest.strip_prefix('[') {
            Some(rest) => rest.split_once(']')?,
            None => ("", rest),
        };
        let mut words = rest.split_whitespace();
        Some(Source {
            options: options.trim().to_owned(),
            uri: words.next()?.to_owned(),
            suite: words.next()?.to_owned(),
            components: words.collect::<Vec<_>>().join(" "),
        })
    };
    text.lines().filter_map(parse).collect()
}

fn parse_deb822(text: &str) -> Vec<Source> {
    let mut sources = Vec::new();
    for stanza in text.split("\n\n") {
        let field = |name: &str| {
            let found = stanza.lines().find_map(|line| {
                let (key, value) = line.split_once(':')?;
                key.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
            });
            found.unwrap_or_default()
        };
        let binary = field("Types").split_whitespace().any(|word| word == "deb");
        if !binary || field("Enabled").eq_ignore_ascii_case("no") {
            continue;
        }
        let mut options = Vec::new();
        if field("Signed-By").starts_with('/') {
            options.push(format!("signed-by={}", field("Signed-By")));
        }
        if field("Trusted").eq_ignore_ascii_case("yes") {
            options.push("trusted=yes".to_owned());
        }
        for uri in field("URIs").split_whitespace() {
            for suite in field("Suites").split_whitespace() {
                sources.push(Source {
                    options: options.join(" "),
                    uri: uri.to_owned(),
                    suite: suite.to_owned(),
                    components: field("Components"),
                });
            }
        }
    }
    sources
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEB822: &str = "Types: deb\n# a comment: with a colon\nURIs: http://mirror.example/debian\n\
        Suites: bookworm bookworm-updates\nComponents: main contrib\n\
        Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n\n\
        Types: deb-src\nURIs: http://src.example\nSuites: bookworm\nComponents: main\n\n\
        Types: deb\nEnabled: no\nURIs: http://off.example\nSuites: bookworm\nComponents: main\n";

    #[test]
    fn deb822_sources_are_read() {
        let sources = parse_deb822(DEB822);
        assert_eq!(sources.len(), 2, "neither the source nor the disabled stanza");
        assert_eq!(sources[1].suite, "bookworm-updates");
        assert_eq!(sources[0].components, "main contrib");
    }

    #[test]
    fn one_line_sources_are_read() {
        let text = "# deb http://no.example x main\n\
            deb [arch=amd64 trusted=yes] http://m.example/debian bookworm main # why\n\
            deb-src http://m.example/debian bookworm main\n";
        let sources = parse_one_line(text);
        assert_eq!(sources.len(), 1);
        assert_eq!(sources[0].options, "arch=amd64 trusted=yes");
        assert_eq!(
            sources[0].line(),
            "deb [arch=amd64 trusted=yes] http://m.example/debian bookworm main\n"
        );
    }

    #[test]
    fn backports_come_from_the_machines_own_mirror() {
        let list = private_sources(&parse_deb822(DEB822), "bookworm");
        assert!(list.contains("http://mirror.example/debian bookworm-backports main\n"), "{list}");
        assert_eq!(list.lines().count(), 3);
        let other = "deb http://other.example/repo stable main\n";
        let list = private_sources(&parse_one_line(other), "bookworm");
        assert!(!list.contains("other.example"), "no third party's source: {list}");
        assert!(list.contains("deb.debian.org/debian bookworm main"), "{list}");
    }

    #[test]
    fn another_release_comes_from_the_machines_own_mirror() {
        let list = release_sources(&parse_deb822(DEB822), "trixie");
        let debian =
            format!("deb [signed-by={KEYRING}] http://mirror.example/debian trixie main\n");
        assert!(list.starts_with(&debian), "{list}");
        assert!(list.contains("deb-src ") && list.lines().count() == 2, "{list}");
        assert!(release_sources(&[], "trixie").contains(DEFAULT_MIRROR));
    }

    #[test]
    fn the_release_is_read() {
        let text = "NAME=\"Debian GNU/Linux\"\nVERSION_CODENAME=bookworm\nID=debian\n";
        assert_eq!(os_release_field(text, "VERSION_CODENAME").as_deref(), Some("bookworm"));
        assert_eq!(os_release_field(text, "MISSING"), None);
    }
}
