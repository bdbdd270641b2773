"""System calls that code may make: an allow-list of name:number on x86_64:number on aarch64 (`-` = none there).

What is not here can't be called: sockets of any kind, SysV IPC, message queues, ptrace and its
relatives, mounts, namespaces, BPF, keyrings, io_uring, perf, userfaultfd, personality, and whatever
a later kernel brings. The calls whose arguments matter are in :mod:`seccomp`.
"""

from __future__ import annotations

import os

_PLAIN = """
read:0:63 write:1:64 open:2:- close:3:57 stat:4:- fstat:5:80 lstat:6:- poll:7:- lseek:8:62 mmap:9:222 mprotect:10:226
munmap:11:215 brk:12:214 rt_sigaction:13:134 rt_sigprocmask:14:135 rt_sigreturn:15:139 ioctl:16:29 pread64:17:67
pwrite64:18:68 readv:19:65 writev:20:66 access:21:- pipe:22:- select:23:- sched_yield:24:124 mremap:25:216
msync:26:227 mincore:27:232 madvise:28:233 dup:32:23 dup2:33:- pause:34:- nanosleep:35:101 getitimer:36:102 alarm:37:-
setitimer:38:103 getpid:39:172 sendfile:40:71 fork:57:- vfork:58:- execve:59:221 exit:60:93 wait4:61:260 uname:63:160
flock:73:32 fsync:74:82 fdatasync:75:83 truncate:76:45 ftruncate:77:46 getdents:78:- getcwd:79:17 chdir:80:49
fchdir:81:50 rename:82:- mkdir:83:- rmdir:84:- creat:85:- link:86:- unlink:87:- symlink:88:- readlink:89:- chmod:90:-
fchmod:91:52 chown:92:- fchown:93:55 lchown:94:- umask:95:166 gettimeofday:96:169 getrlimit:97:163 getrusage:98:165
sysinfo:99:179 times:100:153 getuid:102:174 getgid:104:176 geteuid:107:175 getegid:108:177 setpgid:109:154
getppid:110:173 getpgrp:111:- setsid:112:157 getgroups:115:158 getresuid:118:148 getresgid:120:150 getpgid:121:155
getsid:124:156 capget:125:90 rt_sigpending:127:136 rt_sigtimedwait:128:137 rt_sigsuspend:130:133 sigaltstack:131:132
utime:132:- statfs:137:43 fstatfs:138:44 getpriority:140:141 setpriority:141:140 sched_getparam:143:121
sched_getscheduler:145:120 sched_get_priority_max:146:125 sched_get_priority_min:147:126 sched_rr_get_interval:148:127
arch_prctl:158:- setrlimit:160:164 gettid:186:178 time:201:- futex:202:98 sched_setaffinity:203:122
sched_getaffinity:204:123 epoll_create:213:- getdents64:217:61 set_tid_address:218:96 restart_syscall:219:128
fadvise64:221:223 clock_gettime:228:113 clock_getres:229:114 clock_nanosleep:230:115 exit_group:231:94
epoll_wait:232:- epoll_ctl:233:21 utimes:235:- openat:257:56 mkdirat:258:34 fchownat:260:54 futimesat:261:-
newfstatat:262:79 unlinkat:263:35 renameat:264:38 linkat:265:37 symlinkat:266:36 readlinkat:267:78 fchmodat:268:53
faccessat:269:48 pselect6:270:72 ppoll:271:73 set_robust_list:273:99 get_robust_list:274:100 utimensat:280:88
epoll_pwait:281:22 fallocate:285:47 eventfd2:290:19 epoll_create1:291:20 dup3:292:24 pipe2:293:59 preadv:295:69
pwritev:296:70 prlimit64:302:261 getcpu:309:168 renameat2:316:276 getrandom:318:278 execveat:322:281
membarrier:324:283 copy_file_range:326:285 preadv2:327:286 pwritev2:328:287 statx:332:291 rseq:334:293
close_range:436:436 openat2:437:437 faccessat2:439:439 waitid:247:95
"""
_SPECIAL = """
clone:56:220 kill:62:129 tkill:200:130 tgkill:234:131 prctl:157:167 fcntl:72:25 memfd_create:319:279
rt_sigqueueinfo:129:138 sendto:44:206 recvfrom:45:207 sendmsg:46:211 recvmsg:47:212
"""
_COLUMNS = {"x86_64": 1, "aarch64": 2}
AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""What the kernel calls each architecture in a filter's data."""


def supported() -> bool:
    """Whether there is a table for this machine."""
    return os.uname().machine in _COLUMNS


def plain() -> set[int]:
    """Numbers, on this machine, of the calls that are allowed whatever their arguments."""
    return set(_numbers(_PLAIN).values())


def special(name: str) -> int:
    """Number, on this machine, of a call that is allowed in part or sometimes."""
    return _numbers(_SPECIAL)[name]


def _numbers(table: str) -> dict[str, int]:
    column = _COLUMNS[os.uname().machine]
    rows = [entry.split(":") for entry in table.split()]
    return {row[0]: int(row[column]) for row in rows if row[column] != "-"}
