/*
 * A plugin for QEMU that counts, for `cargo xtask bench --model`, what a real CPU pays for and an emulator does not: misses of
 * caches and TLBs, locked and serialising instructions, address spaces that change, exits to a hypervisor.
 *
 * The guest's program marks where a measurement begins and ends by no-operations whose displacement is a number (MARK_*); from
 * MARK_WARM on the caches are kept, from MARK_BEGIN on it is counted, and at MARK_END a line of the counters, in the order of the
 * enum, goes to the file that `out=` names. Counted is what all CPUs do, whose caches are apart; they must take turns, as they do with
 * -icount.
 *
 * The sizes are those of Intel's Sunny Cove (Ice Lake). What the model leaves out: prefetching, the third cache, page tables' own
 * cache lines, speculation. Pages of user memory are of 4 KiB, those of the kernel's half of 2 MiB and global. An address space
 * that is left keeps its entries if the write to CR3 says so (PCID). A block of instructions that a fault breaks off counts whole.
 *
 * QEMU's package has no header for plugins, so what is used of its interface (version 4) is declared here.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t plugin_id;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_hwaddr;
struct qemu_plugin_register;
typedef struct {
	struct qemu_plugin_register *handle;
	const char *name, *feature;
} reg_descriptor;
/* glib's. */
struct array {
	char *data;
	unsigned len;
};
enum { NO_REGS, READS_REGS };
enum { READ_WRITE = 3 };

void qemu_plugin_register_vcpu_init_cb(plugin_id, void (*)(plugin_id, unsigned));
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, void (*)(plugin_id, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, void (*)(unsigned, void *), int, void *);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, void (*)(unsigned, void *), int, void *);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *, void (*)(unsigned, uint32_t, uint64_t, void *), int, int, void *);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *, void *, size_t);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
void *qemu_plugin_insn_haddr(const struct qemu_plugin_insn *);
bool qemu_plugin_mem_is_store(uint32_t);
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(uint32_t, uint64_t);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *);
struct array *qemu_plugin_get_registers(void);
bool qemu_plugin_read_memory_vaddr(uint64_t, struct array *, size_t);
int qemu_plugin_read_register(struct qemu_plugin_register *, struct array *);
struct array *g_byte_array_new(void);
struct array *g_byte_array_set_size(struct array *, unsigned);

#define EXPORT __attribute__((visibility("default")))
EXPORT int qemu_plugin_version = 4;

enum { MARK_WARM = 0x1ea0ae00, MARK_BEGIN, MARK_END };

/* In the order of the line. */
enum counter { INSTRUCTIONS, LOADS, STORES, L1I_MISSES, L1D_MISSES, L2_MISSES, TLB_MISSES, WALKS, LOCKED, CR3, FLUSHES, SERIALISING, EXITS, COUNTERS };

static uint64_t counts[COUNTERS];
static bool warm;
static FILE *out;

/* ---- caches ---- */

/* A cache of `sets` times `ways` entries; the one that was used longest ago makes room. A key is never 0. */
struct cache {
	unsigned sets, ways;
	uint64_t *keys, *used;
};

static uint64_t clock_of_use;

static struct cache make(unsigned entries, unsigned ways)
{
	struct cache c = { entries / ways, ways, calloc(entries, 8), calloc(entries, 8) };
	if (!c.keys || !c.used)
		abort();
	return c;
}

/* Whether it was there; it is afterwards. */
static bool look(struct cache *c, uint64_t key)
{
	uint64_t *keys = c->keys + (key % c->sets) * c->ways, *used = c->used + (key % c->sets) * c->ways;
	unsigned oldest = 0;
	clock_of_use++;
	for (unsigned i = 0; i < c->ways; i++) {
		if (keys[i] == key) {
			used[i] = clock_of_use;
			return true;
		}
		if (used[i] < used[oldest])
			oldest = i;
	}
	keys[oldest] = key;
	used[oldest] = clock_of_use;
	return false;
}

/* What a CPU has for itself. */
struct cpu {
	struct cache l1i, l1d, l2, itlb, dtlb, dtlb_large, stlb;
	uint64_t pcid;
	struct qemu_plugin_register *registers[16];
};

static struct cpu cpus[16];

/* ---- address spaces ---- */

/* Keys of TLBs: a page's number, whether it is large, and for user memory the PCID. */
#define LARGE (1ull << 50)
#define PCID_AT 51

static uint64_t page_of(const struct cpu *cpu, uint64_t address)
{
	if (address >> 63)
		return (address >> 21 & 0xffffffffffull) | LARGE;
	return (address >> 12) + 1 + (cpu->pcid << PCID_AT);
}

static void translate(struct cpu *cpu, struct cache *small, struct cache *large, uint64_t address)
{
	uint64_t page = page_of(cpu, address);
	if (look(page & LARGE ? large : small, page))
		return;
	counts[TLB_MISSES]++;
	if (!look(&cpu->stlb, page))
		counts[WALKS]++;
}

static void drop(struct cache *c, uint64_t of)
{
	for (unsigned i = 0; i < c->sets * c->ways; i++)
		if (!(c->keys[i] & LARGE) && c->keys[i] >> PCID_AT == of)
			c->keys[i] = c->used[i] = 0;
}

static void drop_page(struct cpu *cpu, uint64_t page)
{
	struct cache *all[] = { &cpu->itlb, &cpu->dtlb, &cpu->dtlb_large, &cpu->stlb };
	for (size_t n = 0; n < sizeof all / sizeof *all; n++) {
		size_t set = (page % all[n]->sets) * all[n]->ways;
		for (size_t i = set; i < set + all[n]->ways; i++)
			if (all[n]->keys[i] == page)
				all[n]->keys[i] = all[n]->used[i] = 0;
	}
}

static void drop_space(struct cpu *cpu, uint64_t of)
{
	drop(&cpu->itlb, of);
	drop(&cpu->dtlb, of);
	drop(&cpu->stlb, of);
}

static void enter_space(struct cpu *cpu, uint64_t cr3)
{
	cpu->pcid = cr3 & 0xfff;
	if (!(cr3 >> 63))
		drop_space(cpu, cpu->pcid);
}

/* ---- registers ---- */

static struct array *buffer;

static void vcpu_init(plugin_id id, unsigned number)
{
	static const char *const names[16] = { "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
					       "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15" };
	struct array *all = qemu_plugin_get_registers();
	struct cpu *cpu = &cpus[number];
	(void)id;
	*cpu = (struct cpu){ make(512, 8), make(768, 12), make(20480, 20), make(128, 8), make(64, 4), make(32, 4), make(2048, 16), 0, { NULL } };
	buffer = g_byte_array_new();
	for (unsigned i = 0; i < all->len; i++)
		for (int n = 0; n < 16; n++)
			if (!strcmp(((reg_descriptor *)(void *)all->data)[i].name, names[n]))
				cpu->registers[n] = ((reg_descriptor *)(void *)all->data)[i].handle;
}

static uint64_t value_of(const struct cpu *cpu, unsigned reg)
{
	uint64_t value = 0;
	g_byte_array_set_size(buffer, 0);
	if (cpu->registers[reg] && qemu_plugin_read_register(cpu->registers[reg], buffer) >= 8)
		memcpy(&value, buffer->data, 8);
	return value;
}

/* ---- instructions ---- */

enum { IS_LOCKED = 1, IS_SERIALISING = 2, IS_EXIT = 4, IS_CR3 = 8, IS_INVLPG = 16, IS_INVPCID = 32, IS_MSR = 64 };

/* Where an instruction's operand lies in memory: a register, another one times a number, a distance. */
struct operand {
	int base, index;
	unsigned scale;
	int32_t distance;
	bool from_next;
};

/* What an instruction is, beside its registers and its operand. */
struct special {
	unsigned what, reg;
	uint32_t mark;
	struct operand operand;
	uint64_t next;
};

/* Whether KVM lets a guest use the register by itself: bases of segments, what SYSENTER enters, speculation's, and of reads the TSC. */
static bool is_msr_free(uint32_t msr)
{
	return (msr >= 0xc0000100 && msr <= 0xc0000102) || (msr >= 0x174 && msr <= 0x176) || msr == 0x48 || msr == 0x49 || msr == 0x10;
}

static struct operand operand_of(const uint8_t *modrm, unsigned rex)
{
	unsigned mod = modrm[0] >> 6, rm = modrm[0] & 7;
	const uint8_t *at = modrm + 1;
	struct operand o = { (int)(rm | (rex & 1) << 3), -1, 1, 0, false };
	if (rm == 4) {
		uint8_t sib = *at++;
		o.base = (int)((sib & 7u) | (rex & 1) << 3);
		o.index = (int)((sib >> 3 & 7u) | (rex & 2) << 2);
		o.scale = 1u << (sib >> 6);
		if (o.index == 4)
			o.index = -1;
		rm = sib & 7;
	}
	if (mod == 0 && rm == 5) {
		o.from_next = o.base == 5 && modrm[0] == 5;
		o.base = -1;
	}
	if (mod == 1)
		o.distance = (int8_t)*at;
	else if (mod == 2 || o.base < 0)
		memcpy(&o.distance, at, 4);
	return o;
}

static void decode_0f(const uint8_t *b, size_t left, bool sixty_six, unsigned rex, struct special *is)
{
	uint8_t modrm = left > 1 ? b[1] : 0;
	unsigned reg = modrm >> 3 & 7;
	bool memory = modrm >> 6 != 3;
	if (memory && left > 1)
		is->operand = operand_of(b + 1, rex);
	switch (b[0]) {
	case 0x00:
		is->what = reg == 2 || reg == 3 ? IS_SERIALISING : 0;
		break;
	case 0x01:
		if (memory)
			is->what = reg == 7 ? IS_SERIALISING | IS_INVLPG : reg == 2 || reg == 3 ? IS_SERIALISING : 0;
		else if (modrm == 0xc1)
			is->what = IS_EXIT;
		else if (modrm == 0xd1)
			is->what = IS_EXIT | IS_SERIALISING;
		break;
	case 0x08:
	case 0x09:
	case 0xa2:
		is->what = IS_SERIALISING | IS_EXIT;
		break;
	case 0x1f:
		if (modrm == 0x80 && left >= 6)
			memcpy(&is->mark, b + 2, 4);
		break;
	case 0x22:
		is->what = IS_SERIALISING | (reg == 3 && !(rex & 4) ? IS_CR3 : 0);
		is->reg = (modrm & 7) | (rex & 1) << 3;
		break;
	case 0x23:
		is->what = IS_SERIALISING | IS_EXIT;
		break;
	case 0x30:
		is->what = IS_SERIALISING | IS_MSR;
		break;
	case 0x32:
		is->what = IS_MSR;
		break;
	case 0x38:
		if (sixty_six && modrm == 0x82 && left > 2) {
			is->what = IS_SERIALISING | IS_INVPCID;
			is->reg = (b[2] >> 3 & 7) | (rex & 4) << 1;
			is->operand = operand_of(b + 2, rex);
		}
		break;
	}
}

static struct special decode(const uint8_t *b, size_t n)
{
	struct special is = { 0 };
	bool locked = false, sixty_six = false;
	unsigned rex = 0;
	size_t i = 0;
	for (; i < n && strchr("\x66\x67\xf2\xf3\x2e\x36\x3e\x26\x64\x65\xf0", b[i]) && b[i]; i++) {
		locked |= b[i] == 0xf0;
		sixty_six |= b[i] == 0x66;
	}
	if (i < n && (b[i] & 0xf0) == 0x40)
		rex = b[i++];
	if (i >= n)
		return is;
	if (b[i] == 0x0f && i + 1 < n)
		decode_0f(b + i + 1, n - i - 1, sixty_six, rex, &is);
	else if (b[i] == 0xcf)
		is.what = IS_SERIALISING;
	else if (b[i] == 0xf4 || (b[i] >= 0xe4 && b[i] <= 0xe7) || (b[i] >= 0xec && b[i] <= 0xef) || (b[i] >= 0x6c && b[i] <= 0x6f))
		is.what = IS_EXIT;
	else if ((b[i] == 0x86 || b[i] == 0x87) && i + 1 < n && b[i + 1] >> 6 != 3)
		locked = true;
	is.what |= locked ? IS_LOCKED : 0;
	return is;
}

static void marked(uint32_t mark)
{
	if (mark == MARK_WARM)
		warm = true;
	if (mark == MARK_BEGIN)
		memset(counts, 0, sizeof counts);
	if (mark != MARK_END)
		return;
	warm = false;
	for (int i = 0; i < COUNTERS; i++)
		fprintf(out, "%" PRIu64 "%c", counts[i], i + 1 == COUNTERS ? '\n' : ' ');
	fflush(out);
}

static uint64_t address_of(const struct cpu *cpu, const struct special *is)
{
	const struct operand *o = &is->operand;
	uint64_t address = (uint64_t)(int64_t)o->distance + (o->from_next ? is->next : 0);
	address += o->base < 0 ? 0 : value_of(cpu, (unsigned)o->base);
	return address + (o->index < 0 ? 0 : value_of(cpu, (unsigned)o->index) * o->scale);
}

/* Its kinds: one page, one address space, all with the global pages, all without. */
static void invpcid(struct cpu *cpu, const struct special *is)
{
	uint64_t descriptor[2] = { 0 }, address = address_of(cpu, is), kind = value_of(cpu, is->reg), own = cpu->pcid;
	g_byte_array_set_size(buffer, 0);
	if (qemu_plugin_read_memory_vaddr(address, buffer, sizeof descriptor))
		memcpy(descriptor, buffer->data, sizeof descriptor);
	cpu->pcid = descriptor[0] & 0xfff;
	if (kind == 0)
		drop_page(cpu, page_of(cpu, descriptor[1]));
	else if (kind == 1)
		drop_space(cpu, cpu->pcid);
	else
		for (uint64_t of = 0; of <= 0xfff; of++)
			drop_space(cpu, of);
	cpu->pcid = own;
}

static void on_special(unsigned number, void *data)
{
	struct cpu *cpu = &cpus[number];
	const struct special *is = data;
	if (is->mark)
		marked(is->mark);
	if (is->what & IS_CR3)
		enter_space(cpu, value_of(cpu, is->reg));
	if (is->what & IS_INVLPG)
		drop_page(cpu, page_of(cpu, address_of(cpu, is)));
	if (is->what & IS_INVPCID)
		invpcid(cpu, is);
	if (!warm)
		return;
	counts[LOCKED] += !!(is->what & IS_LOCKED);
	counts[SERIALISING] += !!(is->what & IS_SERIALISING);
	counts[CR3] += !!(is->what & IS_CR3);
	counts[FLUSHES] += !!(is->what & (IS_INVLPG | IS_INVPCID));
	counts[EXITS] += !!(is->what & IS_EXIT) || (is->what & IS_MSR && !is_msr_free((uint32_t)value_of(cpu, 1)));
}

static void on_memory(unsigned number, uint32_t info, uint64_t address, void *data)
{
	struct cpu *cpu = &cpus[number];
	(void)data;
	if (!warm)
		return;
	counts[qemu_plugin_mem_is_store(info) ? STORES : LOADS]++;
	struct qemu_plugin_hwaddr *physical = qemu_plugin_get_hwaddr(info, address);
	if (physical && qemu_plugin_hwaddr_is_io(physical)) {
		counts[EXITS]++;
		return;
	}
	translate(cpu, &cpu->dtlb, &cpu->dtlb_large, address);
	uint64_t line = ((physical ? qemu_plugin_hwaddr_phys_addr(physical) : address) >> 6) + 1;
	if (!look(&cpu->l1d, line)) {
		counts[L1D_MISSES]++;
		counts[L2_MISSES] += !look(&cpu->l2, line);
	}
}

/* A block of instructions: the lines that it lies in, by the host's addresses, and its first and last page. */
struct block {
	uint64_t instructions, first, last, line, lines;
};

static void on_block(unsigned number, void *data)
{
	struct cpu *cpu = &cpus[number];
	const struct block *b = data;
	if (!warm)
		return;
	counts[INSTRUCTIONS] += b->instructions;
	translate(cpu, &cpu->itlb, &cpu->itlb, b->first);
	if (b->last >> 12 != b->first >> 12)
		translate(cpu, &cpu->itlb, &cpu->itlb, b->last);
	for (uint64_t line = b->line; line < b->line + b->lines; line++) {
		if (!look(&cpu->l1i, line)) {
			counts[L1I_MISSES]++;
			counts[L2_MISSES] += !look(&cpu->l2, line);
		}
	}
}

static void *room(size_t size)
{
	void *made = calloc(1, size);
	if (!made)
		abort();
	return made;
}

static void translated(plugin_id id, struct qemu_plugin_tb *tb)
{
	size_t n = qemu_plugin_tb_n_insns(tb);
	struct block *block = room(sizeof *block);
	(void)id;
	block->instructions = n;
	for (size_t i = 0; i < n; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint8_t bytes[16] = { 0 };
		size_t size = qemu_plugin_insn_size(insn);
		struct special is = decode(bytes, qemu_plugin_insn_data(insn, bytes, sizeof bytes) < size ? 0 : size);
		if (i == 0) {
			block->first = qemu_plugin_insn_vaddr(insn);
			block->line = (uint64_t)(uintptr_t)qemu_plugin_insn_haddr(insn) >> 6;
		}
		block->last = qemu_plugin_insn_vaddr(insn) + size - 1;
		qemu_plugin_register_vcpu_mem_cb(insn, on_memory, NO_REGS, READ_WRITE, NULL);
		if (is.what || is.mark) {
			struct special *kept = room(sizeof *kept);
			*kept = is;
			kept->next = qemu_plugin_insn_vaddr(insn) + size;
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_special, is.what & (IS_CR3 | IS_MSR | IS_INVLPG | IS_INVPCID) ? READS_REGS : NO_REGS, kept);
		}
	}
	block->lines = (block->last >> 6) - (block->first >> 6) + 1;
	qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, NO_REGS, block);
}

EXPORT int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv)
{
	(void)info;
	for (int i = 0; i < argc; i++)
		if (!strncmp(argv[i], "out=", 4))
			out = fopen(argv[i] + 4, "w");
	if (!out) {
		fprintf(stderr, "the plugin wants out=FILE\n");
		return 1;
	}
	qemu_plugin_register_vcpu_init_cb(id, vcpu_init);
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}
