//! A server on io_uring by the crate `tokio-uring`, as programs of Rust use it: one thread, one ring, many connections, and clients of the
//! standard library; then files, read and written at many places at once. Prints what must be the same on every kernel. Built by
//! `cargo xtask runtimes`.
#![forbid(unsafe_code)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use tokio_uring::fs::{File, OpenOptions};
use tokio_uring::net::{TcpListener, UdpSocket};

const CLIENTS: usize = 8;
const MESSAGES: usize = 40;
const BUFFER: usize = 2048;
const PIECES: usize = 24;

/// Sends back what comes, until every client has gone: how many bytes.
async fn serve(listener: TcpListener) -> usize {
    let mut connections = Vec::new();
    for _ in 0..CLIENTS {
        let (stream, _) = listener.accept().await.expect("accept");
        connections.push(tokio_uring::spawn(async move {
            let (mut buffer, mut all) = (vec![0u8; BUFFER], 0);
            loop {
                let (read, filled) = stream.read(buffer).await;
                let len = read.expect("read");
                if len == 0 {
                    return all;
                }
                all += len;
                let mut answer = filled;
                answer.truncate(len);
                let (written, back) = stream.write_all(answer).await;
                written.expect("write");
                buffer = back;
                buffer.resize(BUFFER, 0);
            }
        }));
    }
    let mut bytes = 0;
    for connection in connections {
        bytes += connection.await.expect("a connection");
    }
    bytes
}

/// Sends messages of many lengths: how many came back as they were.
fn client(number: usize, address: SocketAddr) -> usize {
    let mut stream = TcpStream::connect(address).expect("connect");
    let mut equal = 0;
    for message in 0..MESSAGES {
        let len = 1 + (number * 977 + message * 331) % 5000;
        let sent: Vec<u8> = (0..len).map(|i| (i * 7 + number + message) as u8).collect();
        let mut back = vec![0; len];
        stream.write_all(&sent).expect("write");
        stream.read_exact(&mut back).expect("read");
        equal += usize::from(sent == back);
    }
    equal
}

/// Pieces of a file, written and read back in no order.
async fn files() {
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(true).open("uring").await;
    let file = std::rc::Rc::new(file.expect("open"));
    let piece = |number: usize| vec![number as u8; BUFFER];
    let mut writes = Vec::new();
    for number in 0..PIECES {
        let file = file.clone();
        writes.push(tokio_uring::spawn(async move {
            let (written, _) = file.write_all_at(piece(number), (number * BUFFER) as u64).await;
            written.is_ok()
        }));
    }
    let mut written = 0;
    for write in writes {
        written += usize::from(write.await.expect("a write"));
    }
    file.sync_all().await.expect("fsync");
    let mut equal = 0;
    for number in (0..PIECES).rev() {
        let (read, bytes) = file.read_exact_at(vec![0; BUFFER], (number * BUFFER) as u64).await;
        equal += usize::from(read.is_ok() && bytes == piece(number));
    }
    let (end, _) = file.read_at(vec![0; BUFFER], (PIECES * BUFFER) as u64).await;
    println!("{written} of {PIECES} written, {equal} read back, {end:?} at the end");
    println!("no file: {:?}", File::open("none").await.err().map(|error| error.kind()));
    tokio_uring::fs::remove_file("uring").await.expect("unlink");
}

/// Datagrams between two sockets, and a read that is given up.
async fn datagrams() {
    let bind = |port: u16| UdpSocket::bind(([127, 0, 0, 1], port).into());
    let (one, other) = (bind(0).await.expect("bind"), bind(0).await.expect("bind"));
    let to = other.local_addr().expect("address");
    let (sent, _) = one.send_to(b"datagram".to_vec(), to).await;
    let (got, bytes) = other.recv_from(vec![0; 64]).await;
    let (len, from) = got.expect("receive");
    let is_one = from == one.local_addr().expect("address");
    println!("sent {sent:?}, got {:?}, {is_one}", std::str::from_utf8(&bytes[..len]));
    let nothing = other.recv_from(vec![0; 64]);
    let waited = tokio::time::timeout(Duration::from_millis(20), nothing).await;
    println!("given up: {}", waited.is_err());
}

fn main() {
    tokio_uring::start(async {
        let listener = TcpListener::bind(([127, 0, 0, 1], 0).into()).expect("bind");
        let address = listener.local_addr().expect("address");
        let clients: Vec<_> =
            (0..CLIENTS).map(|number| thread::spawn(move || client(number, address))).collect();
        let bytes = serve(listener).await;
        let equal: usize = clients.into_iter().map(|client| client.join().expect("a client")).sum();
        println!("{equal} of {} messages came back, {bytes} bytes", CLIENTS * MESSAGES);
        files().await;
        datagrams().await;
    });
}
