//! What stands behind a virtio-rng and gives the bytes that it is told to: QEMU's `rng-egd`.
//!
//! Reference: the protocol of the entropy gathering daemon, of which QEMU speaks one request.

use std::io::{Read, Result, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::thread;

/// "Give so many bytes, and wait for them."
const GIVE: u8 = 2;

/// Listens at `socket` until QEMU closes its end. `give` is told how many bytes it has given and how many are wanted.
pub fn start(socket: &Path, give: impl Fn(usize, usize) -> Vec<u8> + Send + 'static) -> Result<()> {
    let listener = UnixListener::bind(socket)?;
    thread::spawn(move || -> Result<()> {
        let (mut qemu, _) = listener.accept()?;
        let (mut given, mut request) = (0, [0; 2]);
        loop {
            qemu.read_exact(&mut request)?;
            if request[0] != GIVE {
                return Ok(());
            }
            let bytes = give(given, usize::from(request[1]));
            given += bytes.len();
            qemu.write_all(&bytes)?;
        }
    });
    Ok(())
}

/// QEMU's arguments for a virtio-rng whose bytes come from `socket`.
pub fn arguments(socket: &Path) -> [String; 6] {
    let socket = format!("socket,id=rng-socket,path={}", socket.display());
    let backend = "rng-egd,id=rng,chardev=rng-socket".to_owned();
    let [chardev, object, device] = ["-chardev", "-object", "-device"].map(str::to_owned);
    [chardev, socket, object, backend, device, "virtio-rng-pci,rng=rng".to_owned()]
}
