//! The names that are no words for init: those of Linux's parameters, whether or not this kernel obeys them, so that
//! a command line that was written for Linux gives init the same words here.
//!
//! Owns nothing. Two sources: the names that Debian's Linux 6.12.95 for clouds has in its table of parameters (all of them
//! are here, in the form in which it takes them), and those of 6.12's admin-guide/kernel-parameters.txt that a Linux
//! with other options knows. Names of modules' parameters have a dot and need no list. `tests/tests/boot_user.rs` compares
//! what init gets with Linux.
#![forbid(unsafe_code)]

/// With `=` behind it a name counts only with a value. A hyphen in the
/// line is as good as an underscore.
const NAMES: &str = "\
    accept_memory acpi acpi_apic_instance acpi_backlight= acpi_enforce_resources= acpi_fake_ecdt \
    acpi_force_32bit_fadt_addr acpi_force_table_verification acpi_irq_balance acpi_irq_isa= \
    acpi_irq_nobalance acpi_irq_pci= acpi_mask_gpe= acpi_no_auto_serialize acpi_no_memhotplug \
    acpi_no_static_ssdt acpi_no_watchdog acpi_os_name= acpi_osi= acpi_pm_good acpi_rev_override \
    acpi_rsdp acpi_sci acpi_serialize acpi_skip_timer_override acpi_sleep= \
    acpi_use_timer_override acpica_no_return_repair add_efi_memmap agp= align_va_addr= \
    alloc_snapshot allow_mismatched_32bit_el0 amd_iommu= amd_iommu_dump= amd_iommu_intr= \
    amd_prefcore amd_pstate apic apic_extnmi apicpmtimer apparmor= audit= audit_backlog_limit= \
    backlight= bdev_allow_write_mounted= bert_disable bgrt_disable boot_delay BOOT_IMAGE= \
    bootconfig bootmem_debug brd ca_keys= cachesize= cgroup_debug cgroup_disable= cgroup_enable= \
    cgroup_favordynmods= cgroup_no_v1= checkreqprot= clearcpuid= clk_ignore_unused clock= \
    clocksource= cma= coherent_pool com20020= condev= conmode= console= console_msg_format= \
    consoleblank coredump_filter= cpu0_hotplug cpu_init_udelay cpufreq_driver= \
    cpuidle_sysfs_switch crash_kexec_post_notifiers crashkernel cryptomgr csdlock_debug= debug \
    debug_alternative debug_boot_weak_hash debug_callthunks debug_guardpage_minorder= \
    debug_locks_verbose debug_objects debug_pagealloc= debugfs debugpat default_hugepagesz= \
    deferred_probe_timeout= delayacct dhash_entries= dis_ucode_ldr disable_1tb_segments \
    disable_ipv6= disable_mtrr_cleanup disable_mtrr_trim disable_timer_pin_1 disableapic \
    disablevmx disk_lock= dma_debug= dma_debug_driver= dma_debug_entries= driver_async_probe= \
    dump_apple_properties dump_id_entries dyndbg= early_ioremap_debug early_page_ext earlycon \
    earlyprintk edd= efi efi_fake_mem= efi_no_storage_paranoia efivar_ssdt= elanfreq= elevator= \
    elfcorehdr enable_mtrr_cleanup enable_timer_pin_1 enforcing= erst_disable evm= expert= \
    fail_make_request= fail_page_alloc= fail_usercopy= failslab= fb_tunnels= fbcon= file_caps \
    floppy= force_pal_cache_flush forcepae fred= ftrace= ftrace_boot_snapshot \
    ftrace_dump_on_oops ftrace_filter= ftrace_graph_filter= ftrace_graph_max_depth= \
    ftrace_graph_notrace= ftrace_notrace= fw_devlink gart_fix_e820= gather_data_sampling gbpages \
    gpt hardened_usercopy= hardlockup_all_cpu_backtrace hashdist= hd= hest_disable hibernate= \
    highmem= highres= hostname hpet= hpet_mmap= hugepages= hugepagesz= hugetlb_cma= \
    hugetlb_free_vmemmap= hung_task_panic hv_nopvspin hvc_iucv= hwp= i8042 ia32_emulation ibt= \
    icn= idle ignore_loglevel ignore_rlimit_data ihash_entries= ima_appraise= ima_appraise_tcb \
    ima_canonical_fmt ima_hash= ima_policy= ima_tcb ima_template= ima_template_fmt= imc= \
    indirect_target_selection init= init_mem_pkru= init_on_alloc init_on_free init_pkru= \
    initcall_blacklist= initcall_debug initramfs_async= initramfs_options= initrd initrdmem \
    int_pln_enable integrity_audit= intel_iommu= intel_pstate intremap io_delay iomem= iommu ip= \
    ipcmni_extend irqaffinity= irqfixup irqpoll isolcpus= iucv= ivrs_acpihid= ivrs_hpet= \
    ivrs_ioapic= kasan_multi_shot keep_bootcon keepinitrd kernelcore kexec kexec_crash_image \
    kgdbcon kgdbdbgp= kgdboc= kgdboc_earlycon= kgdbwait kmac= kmemleak= kprobe_event= kpti= \
    kptr_restrict= ksm= l1d_flush l1tf lapic lapic_timer_c2_ok load_ramdisk= lockdown \
    log_buf_len loglevel lp= lpj= lsm= machvec= max_addr= max_loop= maxcpus mcatest= mce= md= \
    mdacon= mds mem mem_encrypt= mem_sleep_default= memblock memhp_default_state= memmap \
    memtest= mfgpt_irq= mfgptfix mhash_entries= microcode= min_addr= mitigations \
    mminit_loglevel= mmio_stale_data mn10300 module_blacklist= movable_node movablecore \
    mphash_entries= mtrr mtrr_chunk_size mtrr_gran_size mtrr_spare_reg_nr multitce= netdev= \
    nettrace nfs_root nfsaddrs= nfsroot= nmi_debug= nmi_watchdog= no5lvl no_console_suspend \
    no_debug_objects no_entry_flush no_file_caps no_hash_pointers no_ipi_broadcast= no_kvmapf \
    no_kvmclock no_kvmclock_vsyscall no_scroll no_steal_acc no_stf_barrier no_timer_check \
    no_uaccess_flush no_vmw_sched_clock noacpi noaliencache noapic noapictimer noautogroup \
    nobats nocache noclflush nodebugmon nodelayacct nodsp noefi noexec32= noexec= nofpu \
    nofsgsbase nofxsr nogbpages nohalt nohibernate nohlt nohpet nohugeiomap nohugevmalloc nohz= \
    nohz_full= noinitrd nointremap nointroute noinvpcid noiotrap noirqdebug noisapnp nolapic \
    nolapic_timer nomca nomce nomfgpt nomodeset nomodule nomsi nonmi_ipi nonx nopat nopcid nopku \
    nopti nopv nopvspin norandmaps noreplace_smp noresume nosbagart nosgx nosmap nosmep nosmp \
    nosmt nosoftlockup nospec_store_bypass_disable nospectre_bhb nospectre_v1 nospectre_v2 \
    nosync notsc noudma nousb nowatchdog nowb nox2apic noxsave noxsaveopt noxsaves nptcg= \
    nr_cpus nr_uarts= ntp_tick_adj= numa numa_balancing= numa_zonelist_order= ohci1394_dma= oops \
    osnoise= page_owner= page_poison= page_reporting panic= panic_on_stackoverflow \
    panic_on_taint panic_on_warn panic_print= parport= parport_init_mode= pause_on_oops= pci \
    pcie_aspm= pcie_pme= pcie_port_pm= pcie_ports= pcmv= pd_ignore_unused pdcchassis= \
    percpu_alloc pirq= plip= pm_async= pm_debug_messages pmtmr= pnp_reserve_dma= pnp_reserve_io= \
    pnp_reserve_irq= pnp_reserve_mem= pnpacpi= pnpbios= possible_cpus powersave= ppc_tm= \
    preempt= print_fatal_signals= printk_no_auto_cpu_seed= profile= prompt_ramdisk= prot_virt= \
    psi= pti quiet quirks= raid= ramdisk_size= ramdisk_start= randomize_kstack_offset ras= \
    rcu_nocb_poll rcu_nocbs rdinit= rdrand rdt= reboot= reg_file_data_sampling \
    relax_domain_level= resched_latency_warn_ms= reserve= reserve_mem= reserve_module_mem= \
    reservetop= reset_devices resume= resume_offset= resumedelay= resumewait retain_initrd \
    retbleed retrigger_iommu= rhash_entries= ring3mwait= riscv_isa_fallback ro rodata root= \
    rootdelay= rootflags= rootfstype= rootwait rproc_mem= rw s390_iommu= sa1100ir \
    sched_thermal_decay_shift= sched_verbose schedstats= security= selinux= serialnumber \
    setclocktime= sev= shapers= show_lapic= skew_tick slab_debug= slab_max_order= slab_merge \
    slab_min_objects= slab_min_order= slab_nomerge slram= slub_debug= slub_max_order= slub_merge \
    slub_min_objects= slub_min_order= slub_nomerge smart2= smp smt= softlockup_all_cpu_backtrace \
    softlockup_panic= spec_rstack_overflow spec_store_bypass_disable= spectre_bhi spectre_v2= \
    spectre_v2_user= split_lock_detect= spu_fs= srbds ssbd= stack_depot_disable stack_guard_gap= \
    stacktrace stacktrace_filter= sti= sti_font= strict_sas_size= svm= swapaccount= swiotlb \
    switches= sysrq_always_enabled tcpmhash_entries= tdfx= test_suspend= thash_entries= \
    thp_anon= thread_backlog_napi thread_stack= threadirqs tmem= TOMOYO_loader= TOMOYO_trigger= \
    topology= topology_updates= tp720= tp_printk tp_printk_stop_on_boot tpm= trace_buf_size= \
    trace_clock= trace_event= trace_instance= trace_options= trace_trigger= traceoff_on_warning \
    tracing_thresh= transparent_hugepage= ts_bgs= tsa tsc= tsc_early_khz tsx= tsx_async_abort \
    udbg_immortal uhash_entries= unknown_nmi_panic unwind_debug userpte vdso32= vdso= vector= \
    vga= video= vm_debug= vmalloc= vmcp_cma= vmhalt= vmpanic= vmpoff= vmscape vsyscall \
    watchdog_thresh= writecombine= x2apic_phys xen_512gb_limit xen_emul_unplug xen_legacy_crash \
    xen_mc_debug xen_msr_safe xen_no_vector_callback xen_nopv xen_scrub_pages= xen_timer_slop \
    xmon xtsc \
";

/// Whether a parameter of this name belongs to the kernel.
pub(super) fn is_known(name: &str, has_value: bool) -> bool {
    NAMES.split_ascii_whitespace().any(|known| match known.strip_suffix('=') {
        Some(known) => has_value && is_same(known, name),
        None => is_same(known, name),
    })
}

fn is_same(known: &str, name: &str) -> bool {
    let even = |byte: u8| if byte == b'-' { b'_' } else { byte };
    known.len() == name.len() && known.bytes().eq(name.bytes().map(even))
}
