/* SCHED_DEADLINE: what is asked for, what is refused, and what can be seen of it. */
#include "check.h"
#include <sched.h>

struct attr {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

static int set(uint64_t runtime, uint64_t deadline, uint64_t period)
{
	struct attr attr = { sizeof attr, 6, 0, 0, 0, runtime, deadline, period };
	return (int)syscall(SYS_sched_setattr, 0, &attr, 0);
}

int main(void)
{
	struct sched_param param = { 0 };
	T(sched_get_priority_max(6));
	T(sched_get_priority_min(6));
	T(sched_setscheduler(0, 6, &param));
	T(set(0, 0, 0));
	T(set(1000, 10000000, 10000000));
	T(set(2000000, 1000000, 10000000));
	T(set(1000000, 10000000, 5000000));
	T(set(1000000, 10000000, 10000000));
	SAY("policy %d", sched_getscheduler(0));
	T(sched_setscheduler(0, SCHED_OTHER, &param));
	CHILD("a user") {
		MUST(setuid(1000));
		T(set(1000000, 10000000, 10000000));
	} END;
	return 0;
}
