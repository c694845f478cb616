//! Options of a TCP socket, and TCP_INFO.

use super::tcp::{Role, State, Tcp};
use crate::mm::fallible::TrySlice;
use crate::net::addr::{Family, LO_MTU};
use crate::net::congestion::Congestion;
use crate::net::option::{bytes_of, known, number, number_or_byte};
use crate::net::options;
use crate::net::socket::NetSocket;
use abi::net::{IPPROTO_IP, IPPROTO_IPV6, IPPROTO_TCP, TcpState, ip, ipv6, tcp};
use abi::socket::{SOL_SOCKET, so};
use abi::{Errno, Result};
use alloc::vec::Vec;

/// The longest `struct tcp_info`.
const INFO_LEN: usize = 248;

impl Tcp {
    /// `setsockopt`.
    pub(super) fn set(&self, level: i32, option: i32, value: &[u8]) -> Result<()> {
        match (level, option) {
            (SOL_SOCKET, _) => {
                self.options.set_socket(option, value)?;
                if matches!(option, so::REUSEADDR | so::REUSEPORT) {
                    let addr = self.options.is_on(const { known(SOL_SOCKET, so::REUSEADDR) });
                    let port = self.options.is_on(const { known(SOL_SOCKET, so::REUSEPORT) });
                    if let Some(held) = &self.state.lock().port {
                        held.set_reuse(addr, port);
                    }
                }
                Ok(())
            }
            (IPPROTO_TCP, tcp::CONGESTION) => {
                if value.is_empty() {
                    return Err(Errno::EINVAL);
                }
                // A name has 15 letters at most, and ends with the option or with a zero.
                let name = value[..value.len().min(15)].split(|&b| b == 0).next();
                let chosen = Congestion::of(name.unwrap_or_default()).ok_or(Errno::ENOENT)?;
                self.options.choose_congestion(chosen);
                Ok(())
            }
            (IPPROTO_TCP, tcp::INFO) => Err(Errno::ENOPROTOOPT),
            (IPPROTO_TCP, tcp::MAXSEG) if number(value)? == 0 => Ok(()),
            (IPPROTO_TCP, tcp::FASTOPEN | tcp::FASTOPEN_CONNECT) => {
                // Connections are made at once as it is.
                let state = self.state.lock().name();
                let fits = matches!(state, TcpState::Close | TcpState::Listen);
                if number(value)? >= 0 && fits { Ok(()) } else { Err(Errno::EINVAL) }
            }
            (IPPROTO_TCP, _) => self.options.keep(level, option, number(value)?),
            // The two ECN bits in it belong to TCP.
            (IPPROTO_IPV6, ipv6::TCLASS) if number(value)? > 0 => {
                self.options.keep(level, option, number(value)? & !3)
            }
            (IPPROTO_IP, ip::TOS) => self.options.keep(level, option, number_or_byte(value) & 0xfc),
            _ => {
                let bound = self.state.lock().port.is_some();
                options::set_ip(&self.options, self.family, level, option, value, bound)
            }
        }
    }

    /// `getsockopt`.
    pub(super) fn get(&self, level: i32, option: i32, room: usize) -> Result<Vec<u8>> {
        match (level, option) {
            (SOL_SOCKET, _) => self.options.get_socket(option),
            (IPPROTO_TCP, tcp::INFO) => self.info(),
            (IPPROTO_TCP, tcp::CONGESTION) => self.options.congestion().shown(),
            (IPPROTO_TCP, tcp::FASTOPEN | tcp::FASTOPEN_CONNECT) => bytes_of(0),
            (IPPROTO_TCP, tcp::MAXSEG) if self.state.lock().is_connected() => {
                bytes_of(self.segment())
            }
            (IPPROTO_TCP, _) => {
                bytes_of(self.options.value(level, option).ok_or(Errno::ENOPROTOOPT)?)
            }
            _ => {
                let connected = self.state.lock().is_connected();
                options::get_ip(&self.options, self.family, level, option, room, connected)
            }
        }
    }

    /// The largest segment, with time stamps, that fits the loopback.
    fn segment(&self) -> i32 {
        let headers = if self.family == Family::V4 { 52 } else { 72 };
        (LO_MTU as i32 - headers).min(65483)
    }

    fn info(&self) -> Result<Vec<u8>> {
        let mut info = [0u8; INFO_LEN];
        let state = self.state.lock();
        info[0] = state.name() as u8;
        let mut word = |at: usize, value: u32| {
            info[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        };
        let segment = if state.is_connected() { self.segment().cast_unsigned() } else { 536 };
        word(8, 200_000); // retransmission timeout, in microseconds
        word(12, 40_000); // delayed acknowledgement
        word(16, segment); // of what is sent
        word(20, segment); // of what is received
        word(64, LO_MTU as u32); // path MTU
        word(80, u32::MAX >> 1); // slow-start threshold: none yet
        word(84, 10); // congestion window
        word(88, segment); // advertised
        word(92, 3); // reordering
        drop(state);
        debug_assert_eq!(self.protocol(), IPPROTO_TCP);
        info.try_owned()
    }
}

impl State {
    fn is_connected(&self) -> bool {
        matches!(self.role, Role::Connected(_))
    }
}
