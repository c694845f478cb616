//! Rust's standard library on a kernel: threads, channels, TCP, UDP and Unix sockets, child processes, files, time, random
//! hash seeds, panics and signals. Prints what must be the same on every kernel. Built by `cargo xtask runtimes`.
#![forbid(unsafe_code)]

use std::collections::hash_map::RandomState;
use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File, OpenOptions};
use std::hash::BuildHasher;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Condvar, Mutex, Once, OnceLock, RwLock, mpsc};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

fn threads() {
    let (total, lock) = (Arc::new(AtomicU64::new(0)), Arc::new(Mutex::new(0u64)));
    let barrier = Arc::new(Barrier::new(16));
    let workers: Vec<_> = (0..16u64)
        .map(|n| {
            let (total, lock, barrier) = (total.clone(), lock.clone(), barrier.clone());
            thread::Builder::new()
                .name(format!("worker {n}"))
                .stack_size(64 * 1024)
                .spawn(move || {
                    let leads = barrier.wait().is_leader();
                    for i in 0..1000 {
                        total.fetch_add(i, Ordering::Relaxed);
                        *lock.lock().unwrap() += n;
                    }
                    (leads, thread::current().name().map(str::to_owned))
                })
                .unwrap()
        })
        .collect();
    let ends: Vec<_> = workers.into_iter().map(|worker| worker.join().unwrap()).collect();
    let leaders = ends.iter().filter(|(leads, _)| *leads).count();
    println!("threads {} {} leaders {leaders} last {:?}", total.load(Ordering::Relaxed), lock.lock().unwrap(), ends[15].1);
    let panicked = thread::spawn(|| panic::quietly()).join().unwrap_err();
    println!("a panic: {:?}", panicked.downcast_ref::<&str>());
    println!("parallelism is known: {}", thread::available_parallelism().is_ok());
    let parked = thread::spawn(|| {
        thread::park();
        "unparked"
    });
    parked.thread().unpark();
    println!("{}", parked.join().unwrap());
    thread_local!(static OWN: std::cell::Cell<u32> = const { std::cell::Cell::new(7) });
    thread::spawn(|| OWN.set(8)).join().unwrap();
    println!("thread local {}", OWN.get());
}

mod panic {
    //! A panic that says nothing.
    pub fn quietly() {
        std::panic::resume_unwind(Box::new("quiet"));
    }
}

fn waiting() {
    let (send, receive) = mpsc::sync_channel(4);
    let producer = thread::spawn(move || (0..10_000u64).for_each(|n| send.send(n).unwrap()));
    println!("channel {}", receive.iter().sum::<u64>());
    producer.join().unwrap();
    let (_keep, silent) = mpsc::channel::<()>();
    let before = Instant::now();
    println!("timeout {:?}, waited {}", silent.recv_timeout(Duration::from_millis(20)), before.elapsed() >= Duration::from_millis(20));
    let pair = Arc::new((Mutex::new(false), Condvar::new()));
    let other = pair.clone();
    let waker = thread::spawn(move || {
        *other.0.lock().unwrap() = true;
        other.1.notify_one();
    });
    let ready = pair.1.wait_while(pair.0.lock().unwrap(), |ready| !*ready).unwrap();
    println!("condition {}", *ready);
    waker.join().unwrap();
    let shared = RwLock::new(vec![1, 2, 3]);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert!(shared.read().unwrap().len() >= 3));
        }
        scope.spawn(|| shared.write().unwrap().push(4));
    });
    println!("scoped {:?}", shared.into_inner().unwrap());
    static ONCE: Once = Once::new();
    static CELL: OnceLock<u32> = OnceLock::new();
    ONCE.call_once(|| {});
    println!("once {} {}", ONCE.is_completed(), CELL.get_or_init(|| 5));
    let slept = Instant::now();
    thread::sleep(Duration::from_millis(30));
    println!("slept {}", slept.elapsed() >= Duration::from_millis(30));
    println!("the clock runs {}", SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).is_ok());
}

fn tcp(address: &str) -> io::Result<()> {
    let listener = TcpListener::bind(address)?;
    let to = listener.local_addr()?;
    let server = thread::spawn(move || -> io::Result<usize> {
        let mut bytes = 0;
        for stream in listener.incoming().take(8) {
            let mut stream = stream?;
            let mut data = Vec::new();
            bytes += stream.read_to_end(&mut data)?;
            data.reverse();
            stream.write_all(&data)?;
        }
        Ok(bytes)
    });
    let clients: Vec<_> = (0..8)
        .map(|n| {
            thread::spawn(move || -> io::Result<bool> {
                let data: Vec<u8> = (0..100_000u32).map(|i| (i * 7 + n) as u8).collect();
                let mut stream = TcpStream::connect(to)?;
                stream.set_nodelay(true)?;
                stream.write_all(&data)?;
                stream.shutdown(Shutdown::Write)?;
                let mut back = Vec::new();
                stream.read_to_end(&mut back)?;
                back.reverse();
                Ok(back == data)
            })
        })
        .collect();
    let right = clients.into_iter().filter(|_| true).map(|c| c.join().unwrap()).filter(|r| matches!(r, Ok(true))).count();
    println!("{address}: {right} right, {} bytes", server.join().unwrap()?);
    println!("refused: {:?}", TcpStream::connect(to).map_err(|e| e.kind()).err());
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    println!("nobody: {:?}", listener.accept().map_err(|e| e.kind()).err());
    let mut silent = TcpStream::connect(listener.local_addr()?)?;
    silent.set_read_timeout(Some(Duration::from_millis(20)))?;
    println!("silence: {:?}", silent.read(&mut [0]).map_err(|e| e.kind()).err());
    println!("taken: {:?}", TcpListener::bind(listener.local_addr()?).map_err(|e| e.kind()).err());
    Ok(())
}

fn datagrams() -> io::Result<()> {
    let (a, b) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("localhost:0")?);
    a.send_to(b"datagram", b.local_addr()?)?;
    let mut buffer = [0; 100];
    let (len, from) = b.recv_from(&mut buffer)?;
    println!("udp {:?} {}", std::str::from_utf8(&buffer[..len]), from == a.local_addr()?);
    b.connect(a.local_addr()?)?;
    b.set_ttl(9)?;
    println!("ttl {} broadcast {} peer {}", b.ttl()?, b.broadcast()?, b.peer_addr()? == a.local_addr()?);
    let (one, two) = UnixDatagram::pair()?;
    one.send(b"unix")?;
    println!("unix {} {}", two.recv(&mut buffer)?, two.local_addr()?.is_unnamed());
    let path = "/tmp/rust-std.sock";
    let _ = fs::remove_file(path);
    let listener = UnixListener::bind(path)?;
    let client = thread::spawn(move || -> io::Result<String> {
        let mut stream = UnixStream::connect(path)?;
        stream.write_all(b"line one\nline two\n")?;
        stream.shutdown(Shutdown::Write)?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(text)
    });
    let (mut stream, _) = listener.accept()?;
    let lines: Vec<_> = BufReader::new(stream.try_clone()?).lines().collect::<io::Result<_>>()?;
    stream.write_all(lines.join("+").as_bytes())?;
    drop(stream);
    println!("{:?} {:?}", client.join().unwrap()?, listener.local_addr()?.as_pathname());
    fs::remove_file(path)
}

fn processes() -> io::Result<()> {
    let me = std::env::current_exe()?;
    let output = Command::new(&me).arg("child").env_clear().env("WORD", "heard").current_dir("/tmp").output()?;
    println!("child {:?} {:?} {:?}", output.status.code(), String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut input = child.stdin.take().unwrap();
    let writer = thread::spawn(move || (0..50_000).try_for_each(|n| writeln!(input, "{n}")));
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().count();
    println!("cat {lines} {:?} {}", writer.join().unwrap().is_ok(), child.wait()?);
    let mut child = Command::new("sleep").arg("1000").process_group(0).spawn()?;
    println!("still {:?}", child.try_wait()?);
    child.kill()?;
    println!("killed by {:?}", child.wait()?.signal());
    println!("none {:?}", Command::new("/none/such").spawn().map_err(|e| e.kind()).err());
    println!("no folder {:?}", Command::new("true").current_dir("/none").status().map_err(|e| e.kind()).err());
    println!("uid {:?}", Command::new("id").arg("-u").uid(1000).output().map(|o| String::from_utf8_lossy(&o.stdout).into_owned()));
    let children: Vec<_> = (0..20).map(|n| Command::new(&me).arg("exit").arg(n.to_string()).spawn()).collect::<io::Result<_>>()?;
    let codes: BTreeSet<_> = children.into_iter().map(|mut c| c.wait().unwrap().code()).collect();
    println!("twenty codes: {}", codes.len());
    println!("abort {:?}", Command::new(&me).arg("abort").stderr(Stdio::null()).status()?.signal());
    let mut replaced = Command::new(&me);
    println!("exec {:?}", replaced.arg("exec").output()?.stdout.len());
    Ok(())
}

fn files() -> io::Result<()> {
    let dir = std::env::temp_dir().join("rust-std");
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(dir.join("a/b/c"))?;
    let path = dir.join("a/file");
    let mut file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o640).open(&path)?;
    file.write_all(b"0123456789")?;
    file.write_all_at(b"XY", 3)?;
    file.seek(SeekFrom::End(-5))?;
    let mut rest = String::new();
    file.read_to_string(&mut rest)?;
    println!("{rest} {:?}", fs::read_to_string(&path)?);
    file.set_len(4)?;
    file.sync_all()?;
    println!("{} {:o} {}", file.metadata()?.len(), file.metadata()?.permissions().mode(), file.metadata()?.nlink());
    println!("{:?}", File::create_new(&path).map_err(|e| e.kind()).err());
    symlink("file", dir.join("a/link"))?;
    fs::hard_link(&path, dir.join("hard"))?;
    println!("{:?} {} {}", fs::read_link(dir.join("a/link"))?, fs::metadata(dir.join("a/link"))?.ino() == fs::metadata(dir.join("hard"))?.ino(), dir.join("a/link").canonicalize()? == path);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
    fs::rename(&path, dir.join("a/b/moved"))?;
    println!("copied {}", fs::copy(dir.join("hard"), dir.join("copy"))?);
    let mut names: Vec<_> = fs::read_dir(&dir)?.map(|e| e.map(|e| e.file_name())).collect::<io::Result<_>>()?;
    names.sort();
    println!("{names:?}");
    let when = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    file.set_modified(when)?;
    println!("{}", fs::metadata(dir.join("hard"))?.modified()? == when);
    let other = File::open(dir.join("hard"))?;
    other.lock()?;
    println!("lock {:?}", file.try_lock().is_err());
    println!("{:?}", fs::remove_dir(&dir).map_err(|e| e.kind()).err());
    println!("{:?}", fs::read("/").map_err(|e| e.kind()).err());
    let mut random = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut random)?;
    println!("random {}", random != [0; 16]);
    println!("full {:?}", File::create("/dev/full")?.write(b"x").map_err(|e| e.kind()).err());
    fs::remove_dir_all(&dir)?;
    println!("gone {}", !dir.exists());
    Ok(())
}

fn memory() {
    let seeds: BTreeSet<u64> = (0..100).map(|_| RandomState::new().hash_one("word")).collect();
    println!("hash seeds differ {}", seeds.len() > 1);
    let map: HashMap<u32, String> = (0..10_000).map(|n| (n, n.to_string())).collect();
    println!("map {} {:?}", map.len(), map.get(&777));
    let big: Vec<u64> = (0..4_000_000).collect();
    println!("big {}", big.iter().sum::<u64>());
    let deep = thread::Builder::new().stack_size(32 << 20).spawn(|| depth(100_000)).unwrap();
    println!("deep {}", deep.join().unwrap());
    let caught = std::panic::catch_unwind(|| panic::quietly());
    println!("caught {}", caught.is_err());
    let huge = Vec::<u8>::new().try_reserve_exact(isize::MAX as usize);
    println!("huge {}", huge.is_err());
}

fn depth(n: u64) -> u64 {
    let block = std::hint::black_box([n; 8]);
    if n == 0 { 0 } else { depth(n - 1) + block[3] / n }
}

fn child(how: &str) -> io::Result<()> {
    match how {
        "child" => {
            println!("{:?} {}", std::env::var("WORD"), std::env::current_dir()?.display());
            eprintln!("{}", std::env::vars().count());
            std::process::exit(3)
        }
        "exit" => std::process::exit(std::env::args().nth(2).and_then(|n| n.parse().ok()).unwrap_or(99)),
        "abort" => std::process::abort(),
        _ => Err(Command::new("echo").arg("replaced").exec()),
    }
}

fn main() -> io::Result<()> {
    if let Some(how) = std::env::args().nth(1) {
        return child(&how);
    }
    threads();
    waiting();
    tcp("127.0.0.1:0")?;
    tcp("[::1]:0")?;
    datagrams()?;
    processes()?;
    files()?;
    memory();
    let broken = Command::new("sh").arg("-c").arg("kill -PIPE $$").status()?;
    println!("pipe {:?} {:?}", broken.signal(), io::Error::from(ErrorKind::BrokenPipe).kind());
    Ok(())
}
