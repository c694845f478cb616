//! A TPM emulator that answers as it is told to, in the place of `swtpm`: QEMU's `-tpmdev emulator`.
//!
//! Two channels: on the first QEMU gives orders to the emulator, among them the descriptor of the second, on which a
//! guest's commands come and answers go. Reference: QEMU, docs/specs/tpm.rst and `backends/tpm/tpm_ioctl.h`.

use std::io::{IoSliceMut, Read, Result, Write};
use std::mem::MaybeUninit;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::thread;

use rustix::fd::OwnedFd;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

/// Orders of the first channel; what is not named here wants no more than to succeed.
const GET_CAPABILITY: u32 = 1;
const GET_ESTABLISHED: u32 = 4;
const SET_DATAFD: u32 = 16;
const SET_BUFFERSIZE: u32 = 17;
/// All that QEMU asks of an emulator of a TPM 2.0, and more.
const ALL_CAPABILITIES: u32 = 0xffff;
const BUFFER: u32 = 3968;

/// The command code of `TPM2_GetRandom`, and how many bytes the kernel asks for. SeaBIOS asks for 20.
const GET_RANDOM: u32 = 0x17b;
const KERNELS: u16 = 32;

/// A success without content.
const SUCCESS: [u8; 10] = [0x80, 0x01, 0, 0, 0, 10, 0, 0, 0, 0];

/// Makes the answer to a `TPM2_GetRandom` of the kernel's, told how many came before.
type Answer = dyn Fn(usize) -> Vec<u8> + Send + Sync;

/// Listens at `socket`, for one QEMU after the other.
pub fn start(
    socket: &Path,
    answer: impl Fn(usize) -> Vec<u8> + Send + Sync + 'static,
) -> Result<()> {
    let listener = UnixListener::bind(socket)?;
    let answer: Arc<Answer> = Arc::new(answer);
    thread::spawn(move || listener.incoming().try_for_each(|control| obey(&control?, &answer)));
    Ok(())
}

/// A TPM 2.0's two interfaces, as QEMU names their devices.
pub const INTERFACES: [&str; 2] = ["tpm-crb", "tpm-tis"];

/// QEMU's arguments for a TPM with this one of the [`INTERFACES`], whose emulator listens at `socket`.
pub fn arguments(interface: &str, socket: &Path) -> [String; 6] {
    let socket = format!("socket,id=tpm-socket,path={}", socket.display());
    let backend = "emulator,id=tpm,chardev=tpm-socket".to_owned();
    let words = ["-chardev", "-tpmdev", "-device"].map(str::to_owned);
    let [chardev, tpmdev, device] = words;
    [chardev, socket, tpmdev, backend, device, format!("{interface},tpmdev=tpm")]
}

/// An answer to `TPM2_GetRandom` with true lengths.
pub fn random_answer(bytes: &[u8]) -> Vec<u8> {
    let mut answer = vec![0x80, 0x01];
    answer.extend((12 + bytes.len() as u32).to_be_bytes());
    answer.extend([0; 4]);
    answer.extend((bytes.len() as u16).to_be_bytes());
    answer.extend(bytes);
    answer
}

/// Carries out QEMU's orders.
fn obey(control: &UnixStream, answer: &Arc<Answer>) -> Result<()> {
    let mut order = [0; 256];
    loop {
        let (len, passed) = receive(control, &mut order)?;
        let Some(code) = order[..len].first_chunk() else { return Ok(()) };
        let reply: &[u32] = match u32::from_be_bytes(*code) {
            GET_CAPABILITY => &[0, ALL_CAPABILITIES],
            GET_ESTABLISHED => &[0, 0],
            SET_BUFFERSIZE => &[0, BUFFER, BUFFER, BUFFER],
            SET_DATAFD => {
                let answer = answer.clone();
                let data = passed.map(UnixStream::from);
                thread::spawn(move || data.map_or(Ok(()), |data| serve(data, &*answer)));
                &[0]
            }
            _ => &[0],
        };
        let reply: Vec<u8> = reply.iter().flat_map(|word| word.to_be_bytes()).collect();
        (&*control).write_all(&reply)?;
    }
}

/// One order, and the descriptor that came with it.
fn receive(control: &UnixStream, order: &mut [u8]) -> Result<(usize, Option<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received =
        recvmsg(control, &mut [IoSliceMut::new(order)], &mut ancillary, RecvFlags::empty())?;
    let passed = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    Ok((received.bytes, passed))
}

/// Answers the guest's commands, and QEMU's own.
fn serve(mut data: UnixStream, answer: &Answer) -> Result<()> {
    let mut command = [0; 4096];
    let mut asked = 0;
    loop {
        let len = data.read(&mut command)?;
        let Some(code) = command[..len].get(6..10) else { return Ok(()) };
        let wanted = command[..len].get(10..12);
        let reply = match (code == GET_RANDOM.to_be_bytes(), wanted) {
            (true, Some(wanted)) if wanted == KERNELS.to_be_bytes() => {
                asked += 1;
                answer(asked - 1)
            }
            (true, Some(firmwares)) => random_answer(&vec![0x5a; usize::from(firmwares[1])]),
            _ => SUCCESS.to_vec(),
        };
        data.write_all(&reply)?;
    }
}

/// A machine that is started again finds its TPM again.
#[test]
fn one_qemu_after_the_other_is_served() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("tpm");
    start(&socket, |_| Vec::new()).unwrap();
    for _ in 0..3 {
        let mut control = UnixStream::connect(&socket).unwrap();
        control.write_all(&GET_ESTABLISHED.to_be_bytes()).unwrap();
        let mut reply = [0xff; 8];
        control.read_exact(&mut reply).unwrap();
        assert_eq!(reply, [0; 8]);
    }
}
