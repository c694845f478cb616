#!/usr/bin/perl
# Forks, pipes, sockets and signals in perl.
use strict;
use warnings;
use Socket;

my @sums;
for my $n (1 .. 5) {
    pipe(my $read, my $write) or die "pipe: $!";
    my $pid = fork() // die "fork: $!";
    if ($pid == 0) {
        my $sum = 0;
        $sum += $_ for 1 .. $n * 100;
        syswrite($write, "$sum\n");
        exit $n;
    }
    close $write;
    chomp(my $line = <$read>);
    waitpid($pid, 0);
    push @sums, $line . ":" . ($? >> 8);
}
print "@sums\n";
my $caught = 0;
$SIG{USR1} = sub { $caught++ };
kill USR1 => $$ for 1 .. 3;
print "caught $caught\n";
socket(my $server, PF_INET, SOCK_STREAM, 0) or die "socket: $!";
bind($server, sockaddr_in(0, INADDR_LOOPBACK)) or die "bind: $!";
listen($server, 5) or die "listen: $!";
my ($port) = sockaddr_in(getsockname($server));
my $pid = fork() // die "fork: $!";
if ($pid == 0) {
    socket(my $client, PF_INET, SOCK_STREAM, 0) or die "socket: $!";
    connect($client, sockaddr_in($port, INADDR_LOOPBACK)) or die "connect: $!";
    syswrite($client, "from the client\n");
    print "client got ", scalar <$client>;
    exit 0;
}
accept(my $connection, $server) or die "accept: $!";
my $line = <$connection>;
syswrite($connection, "an answer\n");
close $connection;
waitpid($pid, 0);
print "server got $line";
print "pipe open: ", `echo through a shell`;
