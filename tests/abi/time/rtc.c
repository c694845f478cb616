/*
 * The clock chip: /dev/rtc0, its class in sysfs, and /proc/driver/rtc. It keeps the wall time, root sets it, one opener at a time has it.
 */
#include "check.h"
#include <linux/rtc.h>
#include <sys/ioctl.h>
#include <sys/mount.h>

static time_t seconds_of(const struct rtc_time *at)
{
	struct tm tm = { .tm_sec = at->tm_sec, .tm_min = at->tm_min, .tm_hour = at->tm_hour, .tm_mday = at->tm_mday, .tm_mon = at->tm_mon,
			 .tm_year = at->tm_year };
	return timegm(&tm);
}

/* The chip less the wall clock, to ten seconds. */
static long behind(int fd)
{
	struct rtc_time at;
	MUST(ioctl(fd, RTC_RD_TIME, &at));
	long apart = (long)(seconds_of(&at) - time(NULL));
	return (apart + (apart < 0 ? -5 : 5)) / 10 * 10;
}

static int set(int fd, int year, int mon, int mday, int hour, int min, int sec)
{
	struct rtc_time at = { .tm_sec = sec, .tm_min = min, .tm_hour = hour, .tm_mday = mday, .tm_mon = mon, .tm_year = year };
	return ioctl(fd, RTC_SET_TIME, &at);
}

static void show(int fd)
{
	struct rtc_time at;
	MUST(ioctl(fd, RTC_RD_TIME, &at));
	printf("%d-%d-%d %d:%d\n", at.tm_year, at.tm_mon, at.tm_mday, at.tm_hour, at.tm_min);
}

static void errors(int fd)
{
	T(set(fd, 124, 12, 1, 0, 0, 0));
	T(set(fd, 124, 0, 0, 0, 0, 0));
	T(set(fd, 123, 1, 29, 0, 0, 0));
	T(set(fd, 124, 0, 1, 24, 0, 0));
	T(set(fd, 124, 0, 1, 0, 60, 0));
	T(set(fd, 124, 0, 1, 0, 0, 60));
	T(set(fd, 69, 11, 31, 0, 0, 0));
	T(ioctl(fd, RTC_RD_TIME, NON_CANONICAL));
	T(ioctl(fd, RTC_SET_TIME, NON_CANONICAL));
	T(ioctl(fd, 0x7077, 0));
	T(write(fd, "x", 1));
}

static void names(void)
{
	char line[64] = "";
	mkdir("/sys", 0755);
	if (access("/sys/class", F_OK) != 0)
		MUST(mount("sys", "/sys", "sysfs", 0, NULL));
	snprintf(line, sizeof line, "%.8s", read_file("/sys/class/rtc/rtc0/name"));
	SAY("name %s", line);
	printf("hctosys %s", read_file("/sys/class/rtc/rtc0/hctosys"));
	IS(labs(atol(read_file("/sys/class/rtc/rtc0/since_epoch")) - (long)time(NULL)) < 5);
	time_t now = time(NULL);
	strftime(line, sizeof line, "%Y-%m-%d\n", gmtime(&now));
	IS(strcmp(read_file("/sys/class/rtc/rtc0/date"), line) == 0);
	strftime(line, sizeof line, "rtc_date\t: %Y-%m-%d\n", gmtime(&now));
	IS(strstr(read_file("/proc/driver/rtc"), line) != NULL);
	IS(strncmp(read_file("/proc/driver/rtc"), "rtc_time\t: ", 11) == 0);
	IS(strstr(read_file("/sys/class/rtc/rtc0/uevent"), "DEVNAME=rtc0") != NULL);
}

int main(void)
{
	names();
	int fd = (int)MUST(open("/dev/rtc0", O_RDWR));
	T(open("/dev/rtc0", O_RDONLY));
	IS(behind(fd) == 0);
	T(set(fd, 124, 1, 29, 23, 59, 30));
	show(fd);
	T(set(fd, 99, 11, 31, 12, 0, 0));
	show(fd);
	errors(fd);
	time_t now = time(NULL);
	struct tm *tm = gmtime(&now);
	T(set(fd, tm->tm_year, tm->tm_mon, tm->tm_mday, tm->tm_hour, tm->tm_min, tm->tm_sec));
	IS(behind(fd) == 0);
	CHILD("of a user") {
		MUST(setresuid(1000, 1000, 1000));
		T(set(fd, 124, 0, 1, 0, 0, 0));
		IS(behind(fd) == 0);
		T(open("/dev/rtc0", O_RDONLY));
	} END;
	close(fd);
	OK(open("/dev/rtc0", O_RDONLY));
	return 0;
}
