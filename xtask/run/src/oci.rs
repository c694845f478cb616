//! OCI image layouts, as a folder or a tar of one: `index.json`, a manifest, a configuration, layers. No registry.
//!
//! What is read of the JSON is this file's own few structs: the crates of the specification bring builders of everything for it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use xtask_host::paths;

use crate::compression;
use crate::image::Image;
use crate::tarball::{self, Names};

/// What an image wants to be run as.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Wishes {
    pub env: Option<Vec<String>>,
    pub entrypoint: Option<Vec<String>>,
    pub cmd: Option<Vec<String>>,
    pub working_dir: Option<String>,
    pub user: Option<String>,
}

#[derive(Deserialize)]
struct Index {
    manifests: Vec<Descriptor>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    digest: String,
    #[serde(default)]
    media_type: String,
    platform: Option<Platform>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Platform {
    architecture: String,
    os: String,
}

#[derive(Deserialize)]
struct Manifest {
    config: Descriptor,
    layers: Vec<Descriptor>,
}

#[derive(Deserialize)]
struct Configuration {
    #[serde(default)]
    config: Option<Wishes>,
}

/// Whether `folder` is an OCI image layout.
pub fn is_layout(folder: &Path) -> bool {
    folder.join("index.json").is_file() && folder.join("blobs").is_dir()
}

/// Adds the layers of the layout in `folder`; what the image wants to be run as.
pub fn add(image: &mut Image, folder: &Path) -> Result<Wishes> {
    let index = fs::read(folder.join("index.json"))?;
    let mut index: Index = serde_json::from_slice(&index).context("index.json")?;
    // An index may hold an index.
    let manifest = loop {
        let chosen = choose(&index.manifests)?;
        let bytes = fs::read(blob(folder, chosen)?)?;
        if chosen.media_type.contains("image.index") || chosen.media_type.contains("manifest.list")
        {
            index = serde_json::from_slice(&bytes).context("an index of the image")?;
        } else {
            break serde_json::from_slice::<Manifest>(&bytes).context("the image's manifest")?;
        }
    };
    let configuration = fs::read(blob(folder, &manifest.config)?)?;
    let configuration: Configuration =
        serde_json::from_slice(&configuration).context("the image's configuration")?;
    for layer in &manifest.layers {
        image.next_layer();
        let layer_blob = compression::open(&blob(folder, layer)?)?;
        let added = tarball::add(image, layer_blob, Names::Whiteouts);
        added.with_context(|| format!("layer {}", layer.digest))?;
    }
    Ok(configuration.config.unwrap_or_default())
}

/// The manifest for this kind of machine; the first of those that do not say, or of several.
fn choose(manifests: &[Descriptor]) -> Result<&Descriptor> {
    let is_image = |one: &&Descriptor| {
        !one.annotations.contains_key("vnd.docker.reference.type")
            && one
                .platform
                .as_ref()
                .is_none_or(|platform| platform.os == "linux" && platform.architecture == "amd64")
    };
    let found: Vec<&Descriptor> = manifests.iter().filter(is_image).collect();
    if found.len() > 1 {
        eprintln!("note: the layout holds {} images; the first is taken", found.len());
    }
    found.first().copied().context("the layout holds no image for linux/amd64")
}

/// The file of a blob, whose SHA-256 is what the descriptor says.
fn blob(folder: &Path, descriptor: &Descriptor) -> Result<PathBuf> {
    let digest = &descriptor.digest;
    let hex = digest
        .strip_prefix("sha256:")
        .filter(|hex| hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let hex = hex.with_context(|| format!("{digest:?} is no SHA-256"))?;
    let path = folder.join("blobs/sha256").join(hex);
    // A fifo would be waited for.
    let is_other = path.metadata().is_ok_and(|data| !data.is_file());
    ensure!(!is_other, "{} is no file", paths::shown(&path));
    let mut file =
        File::open(&path).with_context(|| format!("cannot open {}", paths::shown(&path)))?;
    let mut sum = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            length => sum.update(&buffer[..length]),
        }
    }
    let found: String = sum.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    ensure!(found == hex.to_lowercase(), "{}: the contents do not have this SHA-256", hex);
    Ok(path)
}

/// Unpacks the files of a layout that is a tar into `folder`. False for a tar that is none.
pub fn unpack_tar(tar: &Path, folder: &Path) -> Result<bool> {
    let mut is_layout = false;
    let mut archive = tar::Archive::new(compression::open(tar)?);
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = entry.path_bytes().into_owned();
        let Some(path) = crate::image::relative(&path)? else { continue };
        let path = String::from_utf8_lossy(&path).into_owned();
        // Docker's archives, which are layouts too, have two more.
        let own = ["oci-layout", "index.json", "blobs", "manifest.json", "repositories"];
        if !own.contains(&path.as_str()) && !path.starts_with("blobs/") {
            return Ok(false);
        }
        is_layout |= path == "index.json";
        let place = folder.join(&path);
        match entry.header().entry_type() {
            tar::EntryType::Directory => fs::create_dir_all(&place)?,
            tar::EntryType::Regular => {
                fs::create_dir_all(place.parent().unwrap_or(folder))?;
                let mut file = File::create(&place)?;
                std::io::copy(&mut entry, &mut file)?;
                file.flush()?;
            }
            other => bail!("{path}: an entry of kind {other:?} in an image layout"),
        }
    }
    Ok(is_layout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_for_this_machine_is_chosen() {
        let text = r#"{"manifests": [
            {"digest": "a", "platform": {"architecture": "arm64", "os": "linux"}},
            {"digest": "b", "platform": {"architecture": "amd64", "os": "linux"},
             "annotations": {"vnd.docker.reference.type": "attestation-manifest"}},
            {"digest": "c", "platform": {"architecture": "amd64", "os": "linux"}}]}"#;
        let index: Index = serde_json::from_str(text).unwrap();
        assert_eq!(choose(&index.manifests).unwrap().digest, "c");
        assert!(choose(&index.manifests[..2]).is_err());
    }

    #[test]
    fn blobs_are_only_files_of_the_layout_with_their_checksum() {
        let folder = tempfile::tempdir().unwrap();
        let blobs = folder.path().join("blobs/sha256");
        fs::create_dir_all(&blobs).unwrap();
        let sum = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
        let of = |digest: &str| -> Descriptor {
            serde_json::from_str(&format!("{{\"digest\": \"{digest}\"}}")).unwrap()
        };
        fs::write(blobs.join(sum), "hello").unwrap();
        assert!(blob(folder.path(), &of(&format!("sha256:{sum}"))).is_ok());
        fs::write(blobs.join(sum), "hellO").unwrap();
        assert!(blob(folder.path(), &of(&format!("sha256:{sum}"))).is_err());
        assert!(blob(folder.path(), &of("sha256:../../../etc/passwd")).is_err());
        assert!(blob(folder.path(), &of("md5:0")).is_err());
        fs::remove_file(blobs.join(sum)).unwrap();
        let fifo = std::process::Command::new("mkfifo").arg(blobs.join(sum)).status();
        assert!(fifo.unwrap().success());
        assert!(blob(folder.path(), &of(&format!("sha256:{sum}"))).is_err());
    }
}
