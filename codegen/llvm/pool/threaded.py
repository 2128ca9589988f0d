"""The thread pool's code: LLVM IR with ``<NAME>`` where `module` puts constants.

State is one page: ``word = epoch << ACTIVE | OPEN | number of workers that joined``.

- A caller takes the lock by trylock; a nested or concurrent caller fails to and runs inline.
- It writes the job, opens the word under a new epoch, and takes tasks itself.
- Tasks are parted into ranges, one a thread, each with an atomic counter. A thread takes those of
  its own range, the same whenever there are as many tasks, so that it finds in its cache what it
  read or wrote last time; then it helps the others with theirs.
- A worker joins an open job that has room by ``word -> word + 1`` and leaves by ``word - 1``. The
  caller clears OPEN when the counters have run out and waits for zero workers: never for one that
  has not joined, however the system schedules it.
- A worker that finds itself on the caller's cpu moves away: the scheduler may leave both there for
  seconds, and the worker's spinning would take every second time slice from the caller.
- An idle worker spins (calibrated by time: ``pause`` takes 10 to 140 cycles), then sleeps.
- All zeros means "no workers yet" and the page is wiped on fork: a child starts afresh, unasked.
  Where the kernel refuses to wipe, a pid check on each call replaces the page in the child.
"""

from __future__ import annotations

from .settings import SETTINGS
from .workers import WORKERS

_STATE = """
<DECL>
declare i64 @syscall(i64, ...)
declare ptr @mmap(ptr, i64, i32, i32, i32, i64)
declare i32 @munmap(ptr, i64)
declare i32 @madvise(ptr, i64, i32)
declare i32 @getpid()
declare i32 @sched_yield()
declare i32 @sched_getcpu()
declare i32 @sched_getaffinity(i32, i64, ptr)
declare i32 @sched_setaffinity(i32, i64, ptr)
declare i32 @clock_gettime(i32, ptr)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)
declare i32 @pthread_sigmask(i32, ptr, ptr)
@unity_threads = internal global i32 1
@unity_spin = internal global i32 0
@unity_spins_per_us = internal global i32 0
@unity_state = internal global ptr null
@unity_pidcheck = internal global i32 <PIDCHECK>
@unity_all_signals = internal constant [16 x i64] [<ONES>]

define internal void @unity_futex(ptr %word, i32 %op, i32 %value) nounwind {
  %r = call i64 (i64, ...) @syscall(i64 <FUTEX>, ptr %word, i32 %op, i32 %value,
                                    ptr null, ptr null, i32 0)
  ret void
}

; the state page; null when there is no memory
define internal ptr @unity_page() nounwind {
entry:
  %p = load atomic ptr, ptr @unity_state acquire, align 8
  %none = icmp eq ptr %p, null
  br i1 %none, label %make, label %have
have:
  %pc = load atomic i32, ptr @unity_pidcheck monotonic, align 4
  %chk = icmp ne i32 %pc, 0
  br i1 %chk, label %check, label %ok
check:
  %pidp = getelementptr i8, ptr %p, i64 <at pid>
  %was = load i32, ptr %pidp
  %now = call i32 @getpid()
  %same = icmp eq i32 %was, %now
  br i1 %same, label %ok, label %make
ok:
  ret ptr %p
make:
  %old = phi ptr [ null, %entry ], [ %p, %check ]
  ; private, anonymous
  %q = call ptr @mmap(ptr null, i64 <PAGE>, i32 3, i32 34, i32 -1, i64 0)
  %qi = ptrtoint ptr %q to i64
  %bad = icmp eq i64 %qi, -1
  br i1 %bad, label %fail, label %wipe
fail:
  ret ptr null
wipe:
  %me = call i32 @getpid()
  %mep = getelementptr i8, ptr %q, i64 <at pid>
  store i32 %me, ptr %mep
  ; MADV_WIPEONFORK
  %rc = call i32 @madvise(ptr %q, i64 <PAGE>, i32 <WIPE>)
  %no = icmp ne i32 %rc, 0
  br i1 %no, label %nowipe, label %publish
nowipe:
  store atomic i32 1, ptr @unity_pidcheck monotonic, align 4
  br label %publish
publish:
  %cx = cmpxchg ptr @unity_state, ptr %old, ptr %q acq_rel acquire
  %won = extractvalue { ptr, i1 } %cx, 1
  br i1 %won, label %mine, label %lost
mine:
  ret ptr %q
lost:
  %u = call i32 @munmap(ptr %q, i64 <PAGE>)
  %other = extractvalue { ptr, i1 } %cx, 0
  ret ptr %other
}

; run tasks until the counters have run out, those of one's own range first
define internal void @unity_drain(ptr %s, i64 %rank) nounwind {
entry:
  %fnp = getelementptr i8, ptr %s, i64 <at fn>
  %envp = getelementptr i8, ptr %s, i64 <at env>
  %np = getelementptr i8, ptr %s, i64 <at n>
  %partsp = getelementptr i8, ptr %s, i64 <at parts>
  %ranges = getelementptr i8, ptr %s, i64 <at ranges>
  %f = load ptr, ptr %fnp
  %e = load ptr, ptr %envp
  %n = load i64, ptr %np
  %parts = load i64, ptr %partsp
  %own = urem i64 %rank, %parts
  br label %range
range:
  %done = phi i64 [ 0, %entry ], [ %done1, %over ]
  %part = phi i64 [ %own, %entry ], [ %following, %over ]
  %nextp = getelementptr [<LINE> x i8], ptr %ranges, i64 %part
  %endp = getelementptr i8, ptr %nextp, i64 8
  %end = load i64, ptr %endp
  br label %take
take:
  %t = atomicrmw add ptr %nextp, i64 1 monotonic
  %more = icmp slt i64 %t, %end
  br i1 %more, label %run, label %over
run:
  call void %f(ptr %e, i64 %t, i64 %n)
  br label %take
over:
  %done1 = add i64 %done, 1
  %part1 = add i64 %part, 1
  %wraps = icmp eq i64 %part1, %parts
  %following = select i1 %wraps, i64 0, i64 %part1
  %left = icmp slt i64 %done1, %parts
  br i1 %left, label %range, label %out
out:
  ret void
}
"""

_JOBS = """
define void @unity_parallel_for(ptr %f, ptr %e, i64 %n, i32 %limit) nounwind {
entry:
  %there = load atomic i32, ptr @unity_threads monotonic, align 4
  %lim = call i32 @llvm.smin.i32(i32 %there, i32 %limit)
  %one = icmp slt i32 %lim, 2
  %few = icmp slt i64 %n, 2
  %small = or i1 %one, %few
  br i1 %small, label %serial, label %page
page:
  %s = call ptr @unity_page()
  %nomem = icmp eq ptr %s, null
  br i1 %nomem, label %serial, label %lock
lock:
  %lockp = getelementptr i8, ptr %s, i64 <at lock>
  %lx = cmpxchg ptr %lockp, i32 0, i32 1 acquire monotonic
  %got = extractvalue { i32, i1 } %lx, 1
  br i1 %got, label %own, label %serial
own:
  %readyp = getelementptr i8, ptr %s, i64 <at ready>
  %rd = load atomic i32, ptr %readyp acquire, align 4
  %started = icmp ne i32 %rd, 0
  br i1 %started, label %job, label %start
start:
  call void @unity_start(ptr %s)
  br label %job
job:
  ; the word is closed and active is 0: nobody reads these now
  %fnp = getelementptr i8, ptr %s, i64 <at fn>
  %envp = getelementptr i8, ptr %s, i64 <at env>
  %np = getelementptr i8, ptr %s, i64 <at n>
  %partsp = getelementptr i8, ptr %s, i64 <at parts>
  %ranges = getelementptr i8, ptr %s, i64 <at ranges>
  store ptr %f, ptr %fnp
  store ptr %e, ptr %envp
  store i64 %n, ptr %np
  %most = zext i32 %lim to i64
  %parts = call i64 @llvm.smin.i64(i64 %n, i64 %most)
  store i64 %parts, ptr %partsp
  %each = udiv i64 %n, %parts
  %longer = urem i64 %n, %parts
  br label %share
share:
  %part = phi i64 [ 0, %job ], [ %part1, %share ]
  %begin = phi i64 [ 0, %job ], [ %end1, %share ]
  %is_longer = icmp slt i64 %part, %longer
  %one_more = zext i1 %is_longer to i64
  %size = add i64 %each, %one_more
  %end1 = add i64 %begin, %size
  %nextp = getelementptr [<LINE> x i8], ptr %ranges, i64 %part
  %endp = getelementptr i8, ptr %nextp, i64 8
  store atomic i64 %begin, ptr %nextp monotonic, align 8
  store i64 %end1, ptr %endp
  %part1 = add i64 %part, 1
  %unshared = icmp slt i64 %part1, %parts
  br i1 %unshared, label %share, label %publish
publish:
  %limitp = getelementptr i8, ptr %s, i64 <at limit>
  store atomic i32 %lim, ptr %limitp monotonic, align 4
  %cpup = getelementptr i8, ptr %s, i64 <at cpu>
  %cpu = call i32 @sched_getcpu()
  store atomic i32 %cpu, ptr %cpup monotonic, align 4
  %w = load atomic i64, ptr %s monotonic, align 8
  %epoch = lshr i64 %w, <ACTIVE>
  %epoch1 = add i64 %epoch, 1
  %shifted = shl i64 %epoch1, <ACTIVE>
  %open = or i64 %shifted, <OPEN>
  store atomic i64 %open, ptr %s seq_cst, align 8
  %sleepp = getelementptr i8, ptr %s, i64 <at sleepers>
  %sl = load atomic i32, ptr %sleepp seq_cst, align 4
  %asleep = icmp sgt i32 %sl, 0
  br i1 %asleep, label %count, label %work
count:
  ; wake only what the awake workers cannot cover
  %workers = sub i32 %there, 1
  %awake = sub i32 %workers, %sl
  %others = sub i64 %n, 1
  %may = sub i32 %lim, 1
  %wide = zext i32 %may to i64
  %least = call i64 @llvm.smin.i64(i64 %others, i64 %wide)
  %want = trunc i64 %least to i32
  %missing = sub i32 %want, %awake
  %need = icmp sgt i32 %missing, 0
  br i1 %need, label %wake, label %work
wake:
  call void @unity_futex(ptr %s, i32 129, i32 %missing)
  br label %work
work:
  call void @unity_drain(ptr %s, i64 0)
  %c = atomicrmw and ptr %s, i64 <CLOSED> acq_rel
  br label %wait
wait:
  %i = phi i32 [ 0, %work ], [ %i1, %soon ], [ %i1, %late ]
  %v = load atomic i64, ptr %s acquire, align 8
  %act = and i64 %v, <MASK>
  %idle = icmp eq i64 %act, 0
  br i1 %idle, label %done, label %busy
busy:
  %i1 = add i32 %i, 1
  %short = icmp slt i32 %i, 1000
  br i1 %short, label %soon, label %late
soon:
  <PAUSE>
  br label %wait
late:
  %y = call i32 @sched_yield()
  br label %wait
done:
  store atomic i32 0, ptr %lockp release, align 4
  ret void
serial:
  %none = icmp slt i64 %n, 1
  br i1 %none, label %end, label %loop
loop:
  %t = phi i64 [ 0, %serial ], [ %t1, %loop ]
  call void %f(ptr %e, i64 %t, i64 %n)
  %t1 = add i64 %t, 1
  %go = icmp slt i64 %t1, %n
  br i1 %go, label %loop, label %end
end:
  ret void
}
"""

THREADED = _STATE + WORKERS + _JOBS + SETTINGS
