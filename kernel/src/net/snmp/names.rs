//! The fields of /proc/net/snmp, netstat and snmp6, in Linux 6.12's order, and which counters some of them are.
//!
//! Plain data. A field that is in no table of counters is computed by `shown`, or is 0: it counts what does not happen here, or
//! what is not counted here (such as ACKs without data).

use crate::net::count::{Datagrams, Ip, Tcp};

/// `Ip` in snmp.
pub const IP: &str = "Forwarding DefaultTTL InReceives InHdrErrors InAddrErrors ForwDatagrams InUnknownProtos \
     InDiscards InDelivers OutRequests OutDiscards OutNoRoutes ReasmTimeout ReasmReqds ReasmOKs \
     ReasmFails FragOKs FragFails FragCreates OutTransmits";
/// `Icmp` in snmp.
pub const ICMP: &str = "InMsgs InErrors InCsumErrors InDestUnreachs InTimeExcds InParmProbs InSrcQuenchs \
     InRedirects InEchos InEchoReps InTimestamps InTimestampReps InAddrMasks InAddrMaskReps \
     OutMsgs OutErrors OutRateLimitGlobal OutRateLimitHost OutDestUnreachs OutTimeExcds \
     OutParmProbs OutSrcQuenchs OutRedirects OutEchos OutEchoReps OutTimestamps OutTimestampReps \
     OutAddrMasks OutAddrMaskReps";
/// `Tcp` in snmp.
pub const TCP: &str = "RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens AttemptFails EstabResets \
     CurrEstab InSegs OutSegs RetransSegs InErrs OutRsts InCsumErrors";
/// `Udp` and `UdpLite` in snmp.
pub const UDP: &str = "InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors \
     IgnoredMulti MemErrors";
/// `TcpExt` in netstat.
pub const TCP_EXT: &str = "SyncookiesSent SyncookiesRecv SyncookiesFailed EmbryonicRsts PruneCalled RcvPruned \
     OfoPruned OutOfWindowIcmps LockDroppedIcmps ArpFilter TW TWRecycled TWKilled PAWSActive \
     PAWSEstab DelayedACKs DelayedACKLocked DelayedACKLost ListenOverflows ListenDrops TCPHPHits \
     TCPPureAcks TCPHPAcks TCPRenoRecovery TCPSackRecovery TCPSACKReneging TCPSACKReorder \
     TCPRenoReorder TCPTSReorder TCPFullUndo TCPPartialUndo TCPDSACKUndo TCPLossUndo \
     TCPLostRetransmit TCPRenoFailures TCPSackFailures TCPLossFailures TCPFastRetrans \
     TCPSlowStartRetrans TCPTimeouts TCPLossProbes TCPLossProbeRecovery TCPRenoRecoveryFail \
     TCPSackRecoveryFail TCPRcvCollapsed TCPBacklogCoalesce TCPDSACKOldSent TCPDSACKOfoSent \
     TCPDSACKRecv TCPDSACKOfoRecv TCPAbortOnData TCPAbortOnClose TCPAbortOnMemory \
     TCPAbortOnTimeout TCPAbortOnLinger TCPAbortFailed TCPMemoryPressures \
     TCPMemoryPressuresChrono TCPSACKDiscard TCPDSACKIgnoredOld TCPDSACKIgnoredNoUndo \
     TCPSpuriousRTOs TCPMD5NotFound TCPMD5Unexpected TCPMD5Failure TCPSackShifted TCPSackMerged \
     TCPSackShiftFallback TCPBacklogDrop PFMemallocDrop TCPMinTTLDrop TCPDeferAcceptDrop \
     IPReversePathFilter TCPTimeWaitOverflow TCPReqQFullDoCookies TCPReqQFullDrop TCPRetransFail \
     TCPRcvCoalesce TCPOFOQueue TCPOFODrop TCPOFOMerge TCPChallengeACK TCPSYNChallenge \
     TCPFastOpenActive TCPFastOpenActiveFail TCPFastOpenPassive TCPFastOpenPassiveFail \
     TCPFastOpenListenOverflow TCPFastOpenCookieReqd TCPFastOpenBlackhole \
     TCPSpuriousRtxHostQueues BusyPollRxPackets TCPAutoCorking TCPFromZeroWindowAdv \
     TCPToZeroWindowAdv TCPWantZeroWindowAdv TCPSynRetrans TCPOrigDataSent TCPHystartTrainDetect \
     TCPHystartTrainCwnd TCPHystartDelayDetect TCPHystartDelayCwnd TCPACKSkippedSynRecv \
     TCPACKSkippedPAWS TCPACKSkippedSeq TCPACKSkippedFinWait2 TCPACKSkippedTimeWait \
     TCPACKSkippedChallenge TCPWinProbe TCPKeepAlive TCPMTUPFail TCPMTUPSuccess TCPDelivered \
     TCPDeliveredCE TCPAckCompressed TCPZeroWindowDrop TCPRcvQDrop TCPWqueueTooBig \
     TCPFastOpenPassiveAltKey TcpTimeoutRehash TcpDuplicateDataRehash TCPDSACKRecvSegs \
     TCPDSACKIgnoredDubious TCPMigrateReqSuccess TCPMigrateReqFailure TCPPLBRehash TCPAORequired \
     TCPAOBad TCPAOKeyNotFound TCPAOGood TCPAODroppedIcmps";
/// `IpExt` in netstat.
pub const IP_EXT: &str = "InNoRoutes InTruncatedPkts InMcastPkts OutMcastPkts InBcastPkts OutBcastPkts InOctets \
     OutOctets InMcastOctets OutMcastOctets InBcastOctets OutBcastOctets InCsumErrors \
     InNoECTPkts InECT1Pkts InECT0Pkts InCEPkts ReasmOverlaps";
/// `MPTcpExt` in netstat.
pub const MPTCP_EXT: &str = "MPCapableSYNRX MPCapableSYNTX MPCapableSYNACKRX MPCapableACKRX MPCapableFallbackACK \
     MPCapableFallbackSYNACK MPCapableSYNTXDrop MPCapableSYNTXDisabled MPCapableEndpAttempt \
     MPFallbackTokenInit MPTCPRetrans MPJoinNoTokenFound MPJoinSynRx MPJoinSynBackupRx \
     MPJoinSynAckRx MPJoinSynAckBackupRx MPJoinSynAckHMacFailure MPJoinAckRx \
     MPJoinAckHMacFailure MPJoinSynTx MPJoinSynTxCreatSkErr MPJoinSynTxBindErr \
     MPJoinSynTxConnectErr DSSNotMatching DSSCorruptionFallback DSSCorruptionReset InfiniteMapTx \
     InfiniteMapRx DSSNoMatchTCP DataCsumErr OFOQueueTail OFOQueue OFOMerge NoDSSInWindow \
     DuplicateData AddAddr AddAddrTx AddAddrTxDrop EchoAdd EchoAddTx EchoAddTxDrop PortAdd \
     AddAddrDrop MPJoinPortSynRx MPJoinPortSynAckRx MPJoinPortAckRx MismatchPortSynRx \
     MismatchPortAckRx RmAddr RmAddrDrop RmAddrTx RmAddrTxDrop RmSubflow MPPrioTx MPPrioRx \
     MPFailTx MPFailRx MPFastcloseTx MPFastcloseRx MPRstTx MPRstRx RcvPruned SubflowStale \
     SubflowRecover SndWndShared RcvWndShared RcvWndConflictUpdate RcvWndConflict MPCurrEstab \
     Blackhole";
/// snmp6, behind `Ip6`.
pub const IP6: &str = "InReceives InHdrErrors InTooBigErrors InNoRoutes InAddrErrors InUnknownProtos \
     InTruncatedPkts InDiscards InDelivers OutForwDatagrams OutRequests OutDiscards OutNoRoutes \
     ReasmTimeout ReasmReqds ReasmOKs ReasmFails FragOKs FragFails FragCreates InMcastPkts \
     OutMcastPkts InOctets OutOctets InMcastOctets OutMcastOctets InBcastOctets OutBcastOctets \
     InNoECTPkts InECT1Pkts InECT0Pkts InCEPkts OutTransmits";
/// snmp6, behind `Icmp6`.
pub const ICMP6: &str = "InMsgs InErrors OutMsgs OutErrors InCsumErrors OutRateLimitHost InDestUnreachs InPktTooBigs \
     InTimeExcds InParmProblems InEchos InEchoReplies InGroupMembQueries InGroupMembResponses \
     InGroupMembReductions InRouterSolicits InRouterAdvertisements InNeighborSolicits \
     InNeighborAdvertisements InRedirects InMLDv2Reports OutDestUnreachs OutPktTooBigs \
     OutTimeExcds OutParmProblems OutEchos OutEchoReplies OutGroupMembQueries \
     OutGroupMembResponses OutGroupMembReductions OutRouterSolicits OutRouterAdvertisements \
     OutNeighborSolicits OutNeighborAdvertisements OutRedirects OutMLDv2Reports";
/// snmp6, behind `UdpLite6`; `Udp6` has those of [`UDP`].
pub const UDP_LITE6: &str =
    "InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors MemErrors";

/// Counters of [`UDP`]; `InErrors` is the sum of two.
pub const OF_UDP: &[(&str, Datagrams)] = &[
    ("InDatagrams", Datagrams::Received),
    ("NoPorts", Datagrams::NoPort),
    ("OutDatagrams", Datagrams::Sent),
    ("RcvbufErrors", Datagrams::NoRoom),
    ("SndbufErrors", Datagrams::NoMemory),
    ("IgnoredMulti", Datagrams::Ignored),
];

/// Counters of [`TCP`]; `RtoAlgorithm` to `MaxConn` and `CurrEstab` are no counters.
pub const OF_TCP: &[(&str, Tcp)] = &[
    ("ActiveOpens", Tcp::ActiveOpens),
    ("PassiveOpens", Tcp::PassiveOpens),
    ("AttemptFails", Tcp::AttemptFails),
    ("EstabResets", Tcp::EstabResets),
    ("InSegs", Tcp::Segments),
    ("OutSegs", Tcp::Segments),
    ("OutRsts", Tcp::ResetsSent),
];

/// Counters of [`TCP_EXT`].
pub const OF_TCP_EXT: &[(&str, Tcp)] = &[
    ("TW", Tcp::WaitsOver),
    ("ListenOverflows", Tcp::ListenOverflows),
    ("ListenDrops", Tcp::ListenOverflows),
    ("TCPAbortOnData", Tcp::AbortsOnData),
    ("TCPAbortOnClose", Tcp::AbortsOnClose),
    ("TCPTimeWaitOverflow", Tcp::WaitsCut),
    ("TCPOrigDataSent", Tcp::DataSegments),
    ("TCPDelivered", Tcp::DataSegments),
];

/// Counters of [`IP`] and [`IP6`].
pub const OF_IP: &[(&str, Ip)] = &[
    ("InReceives", Ip::Packets),
    ("InDelivers", Ip::Packets),
    ("OutRequests", Ip::Packets),
    ("OutTransmits", Ip::Packets),
    ("OutNoRoutes", Ip::NoRoutes),
];

/// Counters of [`IP_EXT`] and [`IP6`].
pub const OF_IP_EXT: &[(&str, Ip)] = &[
    ("InBcastPkts", Ip::Broadcasts),
    ("OutBcastPkts", Ip::Broadcasts),
    ("InOctets", Ip::Octets),
    ("OutOctets", Ip::Octets),
    ("InBcastOctets", Ip::BroadcastOctets),
    ("OutBcastOctets", Ip::BroadcastOctets),
    ("InECT1Pkts", Ip::Ect1),
    ("InECT0Pkts", Ip::Ect0),
    ("InCEPkts", Ip::Ce),
];

/// The message types that fields of [`ICMP`] are named after, following `In` or `Out`.
pub const ICMP_TYPES: &[(&str, u8)] = &[
    ("DestUnreachs", 3),
    ("TimeExcds", 11),
    ("ParmProbs", 12),
    ("SrcQuenchs", 4),
    ("Redirects", 5),
    ("Echos", 8),
    ("EchoReps", 0),
    ("Timestamps", 13),
    ("TimestampReps", 14),
    ("AddrMasks", 17),
    ("AddrMaskReps", 18),
];

/// The message types that fields of [`ICMP6`] are named after, following `In` or `Out`.
pub const ICMP6_TYPES: &[(&str, u8)] = &[
    ("DestUnreachs", 1),
    ("PktTooBigs", 2),
    ("TimeExcds", 3),
    ("ParmProblems", 4),
    ("Echos", 128),
    ("EchoReplies", 129),
    ("GroupMembQueries", 130),
    ("GroupMembResponses", 131),
    ("GroupMembReductions", 132),
    ("RouterSolicits", 133),
    ("RouterAdvertisements", 134),
    ("NeighborSolicits", 135),
    ("NeighborAdvertisements", 136),
    ("Redirects", 137),
    ("MLDv2Reports", 143),
];

/// Whether one of `names`, which spaces separate, is `prefix` followed by `name`.
const fn has(names: &str, prefix: &str, name: &str) -> bool {
    let (all, first, rest) = (names.as_bytes(), prefix.as_bytes(), name.as_bytes());
    let len = first.len() + rest.len();
    let mut at = 0;
    while at + len <= all.len() {
        let mut same = 0;
        while same < len {
            let wanted = if same < first.len() { first[same] } else { rest[same - first.len()] };
            if all[at + same] != wanted {
                break;
            }
            same += 1;
        }
        let begins = at == 0 || all[at - 1] == b' ';
        if same == len && begins && (at + len == all.len() || all[at + len] == b' ') {
            return true;
        }
        at += 1;
    }
    false
}

/// Stops the build if a name of `table`, behind `prefix`, is none of `names`: its counter would be shown nowhere.
const fn must_have<C>(names: &str, prefix: &str, table: &[(&str, C)]) {
    let mut at = 0;
    while at < table.len() {
        assert!(has(names, prefix, table[at].0), "a counter has a name that is no field");
        at += 1;
    }
}

const _: () = {
    must_have(UDP, "", OF_UDP);
    must_have(TCP, "", OF_TCP);
    must_have(TCP_EXT, "", OF_TCP_EXT);
    must_have(IP, "", OF_IP);
    must_have(IP_EXT, "", OF_IP_EXT);
    must_have(ICMP, "In", ICMP_TYPES);
    must_have(ICMP, "Out", ICMP_TYPES);
    must_have(ICMP6, "In", ICMP6_TYPES);
    must_have(ICMP6, "Out", ICMP6_TYPES);
};
