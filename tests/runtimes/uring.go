// A server on io_uring in Go, by bare calls as there is no package in its library: one goroutine has the ring, clients use net.
// Prints what must be the same on every kernel. Built by `cargo xtask runtimes`.
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"
)

const (
	setupCall, enterCall, registerCall = 425, 426, 427

	entries    = 64
	clients    = 8
	messages   = 40
	size       = 2048
	getEvents  = 1
	registered = 16

	opAccept, opClose, opSend, opRecv = 13, 19, 26, 27
)

type params struct {
	sqEntries, cqEntries, flags, cpu, idle, features, wq uint32
	_                                                    [3]uint32
	sq                                                   struct {
		head, tail, mask, entries, flags, dropped, array, _ uint32
		_                                                   uint64
	}
	cq struct {
		head, tail, mask, entries, overflow, cqes, flags, _ uint32
		_                                                   uint64
	}
}

type sqe struct {
	opcode, flags       uint8
	ioprio              uint16
	fd                  int32
	off, addr           uint64
	length, opFlags     uint32
	userData            uint64
	buffer, personality uint16
	file                uint32
	addr3, pad          uint64
}

type cqe struct {
	userData uint64
	res      int32
	flags    uint32
}

type ring struct {
	fd      uintptr
	flags   uintptr
	p       params
	words   []byte
	sqes    []byte
	waiting uintptr
}

func must(err error) {
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}

func open() *ring {
	r := &ring{}
	fd, _, errno := syscall.Syscall(setupCall, entries, uintptr(unsafe.Pointer(&r.p)), 0)
	if errno != 0 {
		must(errno)
	}
	r.fd = fd
	var err error
	length := int(max(r.p.cq.cqes+r.p.cqEntries*16, r.p.sq.array+entries*4))
	r.words, err = syscall.Mmap(int(fd), 0, length, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED|syscall.MAP_POPULATE)
	must(err)
	r.sqes, err = syscall.Mmap(int(fd), 0x10000000, entries*64, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED|syscall.MAP_POPULATE)
	must(err)
	for i := uint32(0); i < entries; i++ {
		*r.word(r.p.sq.array + 4*i) = i
	}
	// The ring's own descriptor, by number.
	self := struct {
		offset, _ uint32
		data      uint64
	}{^uint32(0), 0, uint64(fd)}
	if n, _, errno := syscall.Syscall6(registerCall, fd, 20, uintptr(unsafe.Pointer(&self)), 1, 0, 0); errno == 0 && n == 1 {
		r.fd, r.flags = uintptr(self.offset), registered
	}
	return r
}

func (r *ring) word(at uint32) *uint32 { return (*uint32)(unsafe.Pointer(&r.words[at])) }

func (r *ring) push(e sqe) {
	tail := r.word(r.p.sq.tail)
	if *tail-atomic.LoadUint32(r.word(r.p.sq.head)) == entries {
		r.enter(0)
	}
	*(*sqe)(unsafe.Pointer(&r.sqes[*tail%entries*64])) = e
	atomic.StoreUint32(tail, *tail+1)
	r.waiting++
}

func (r *ring) enter(least uintptr) {
	for {
		n, _, errno := syscall.Syscall6(enterCall, r.fd, r.waiting, least, getEvents|r.flags, 0, 8)
		if errno == 0 {
			r.waiting -= n
			return
		}
		if errno != syscall.EINTR {
			must(errno)
		}
	}
}

func (r *ring) take() (cqe, bool) {
	head := r.word(r.p.cq.head)
	if *head == atomic.LoadUint32(r.word(r.p.cq.tail)) {
		return cqe{}, false
	}
	c := *(*cqe)(unsafe.Pointer(&r.words[r.p.cq.cqes+*head%r.p.cqEntries*16]))
	atomic.StoreUint32(head, *head+1)
	return c, true
}

type connection struct {
	buffer      [size]byte
	from, until int
}

// Sends back what comes, until every client has gone.
func serve(listener int, done chan<- int) {
	runtime.LockOSThread()
	r := open()
	connections := map[int32]*connection{}
	gone, bytes := 0, 0
	transfer := func(op uint8, fd int32) {
		c := connections[fd]
		e := sqe{opcode: op, fd: fd, userData: uint64(op)<<32 | uint64(uint32(fd))}
		if op == opRecv {
			e.addr, e.length = uint64(uintptr(unsafe.Pointer(&c.buffer[0]))), size
		} else {
			e.addr, e.length = uint64(uintptr(unsafe.Pointer(&c.buffer[c.from]))), uint32(c.until-c.from)
		}
		r.push(e)
	}
	accept := sqe{opcode: opAccept, fd: int32(listener), userData: opAccept << 32}
	r.push(accept)
	for gone < clients {
		r.enter(1)
		for c, ok := r.take(); ok; c, ok = r.take() {
			op, fd := uint8(c.userData>>32), int32(uint32(c.userData))
			switch op {
			case opAccept:
				connections[c.res] = &connection{}
				transfer(opRecv, c.res)
				r.push(accept)
			case opRecv:
				if c.res <= 0 {
					delete(connections, fd)
					r.push(sqe{opcode: opClose, fd: fd, userData: opClose << 32})
					continue
				}
				connections[fd].from, connections[fd].until = 0, int(c.res)
				bytes += int(c.res)
				transfer(opSend, fd)
			case opSend:
				if c.res < 0 {
					must(syscall.Errno(-c.res))
				}
				connections[fd].from += int(c.res)
				if connections[fd].from == connections[fd].until {
					transfer(opRecv, fd)
				} else {
					transfer(opSend, fd)
				}
			case opClose:
				gone++
			}
		}
	}
	done <- bytes
}

// Sends messages of many lengths, and compares what comes back.
func client(number, port int) int {
	stream, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	must(err)
	defer stream.Close()
	equal := 0
	for message := 0; message < messages; message++ {
		sent := make([]byte, 1+(number*977+message*331)%5000)
		for i := range sent {
			sent[i] = byte(i*7 + number + message)
		}
		back := make([]byte, len(sent))
		_, err = stream.Write(sent)
		must(err)
		_, err = io.ReadFull(stream, back)
		must(err)
		if string(sent) == string(back) {
			equal++
		}
	}
	return equal
}

func main() {
	listener, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	must(err)
	must(syscall.Bind(listener, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	must(syscall.Listen(listener, clients))
	address, err := syscall.Getsockname(listener)
	must(err)
	done := make(chan int, 1)
	go serve(listener, done)
	var all sync.WaitGroup
	var equal atomic.Int64
	for number := 0; number < clients; number++ {
		all.Add(1)
		go func() {
			defer all.Done()
			equal.Add(int64(client(number, address.(*syscall.SockaddrInet4).Port)))
		}()
	}
	all.Wait()
	fmt.Printf("%d of %d messages came back, %d bytes\n", equal.Load(), clients*messages, <-done)
}
