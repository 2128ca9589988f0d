"""The thread pool's code: LLVM IR with ``<NAME>`` where `pool` puts constants.

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

THREADED = """
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

; exclude this cpu, then allow it again: the kernel moves the thread
define internal i1 @unity_leave_cpu(i32 %cpu) nounwind noinline {
entry:
  %all = alloca [128 x i8], align 8
  %rest = alloca [128 x i8], align 8
  %g = call i32 @sched_getaffinity(i32 0, i64 128, ptr %all)
  %known = icmp sge i32 %g, 0
  br i1 %known, label %move, label %out
move:
  call void @llvm.memcpy.p0.p0.i64(ptr %rest, ptr %all, i64 128, i1 false)
  %byte = lshr i32 %cpu, 3
  %p = getelementptr i8, ptr %rest, i32 %byte
  %old = load i8, ptr %p
  %k = trunc i32 %cpu to i8
  %k7 = and i8 %k, 7
  %bit = shl i8 1, %k7
  %not = xor i8 %bit, -1
  %new = and i8 %old, %not
  store i8 %new, ptr %p
  %m = call i32 @sched_setaffinity(i32 0, i64 128, ptr %rest)
  ; fails where this is the only cpu
  %moved = icmp eq i32 %m, 0
  br i1 %moved, label %restore, label %out
restore:
  %r = call i32 @sched_setaffinity(i32 0, i64 128, ptr %all)
  br label %out
out:
  %res = phi i1 [ false, %entry ], [ false, %move ], [ true, %restore ]
  ret i1 %res
}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define internal ptr @unity_worker(ptr %arg) nounwind {
entry:
  %s = load atomic ptr, ptr @unity_state acquire, align 8
  %ai = ptrtoint ptr %arg to i64
  %id = trunc i64 %ai to i32
  %rank = add i32 %id, 1
  %sleepp = getelementptr i8, ptr %s, i64 <at sleepers>
  %cpup = getelementptr i8, ptr %s, i64 <at cpu>
  br label %top
top:
  ; %last: the epoch this worker has served
  %last = phi i64 [ 0, %entry ], [ %epoch, %leave ], [ %epoch, %room ], [ %last, %awake ]
  %cpu = call i32 @sched_getcpu()
  %ccpu = load atomic i32, ptr %cpup monotonic, align 4
  %here = icmp eq i32 %cpu, %ccpu
  br i1 %here, label %move, label %look
move:
  ; spinning here would only steal the caller's time
  %moved = call i1 @unity_leave_cpu(i32 %cpu)
  br i1 %moved, label %look, label %park
look:
  %i = phi i32 [ 0, %top ], [ 0, %move ], [ %i1, %again ]
  %w = load atomic i64, ptr %s acquire, align 8
  %epoch = lshr i64 %w, <ACTIVE>
  %new = icmp ne i64 %epoch, %last
  %ob = and i64 %w, <OPEN>
  %open = icmp ne i64 %ob, 0
  %can = and i1 %new, %open
  br i1 %can, label %join, label %idle
join:
  %lim = load atomic i32, ptr @unity_threads monotonic, align 4
  %wanted = icmp slt i32 %rank, %lim
  br i1 %wanted, label %room, label %quit
room:
  ; read before the word is changed: if it belonged to another job, the exchange fails
  %limitp = getelementptr i8, ptr %s, i64 <at limit>
  %limit = load atomic i32, ptr %limitp monotonic, align 4
  %joined = and i64 %w, <MASK>
  %others = trunc i64 %joined to i32
  %mine = add i32 %others, 1
  %free = icmp slt i32 %mine, %limit
  br i1 %free, label %cas, label %top
cas:
  %w1 = add i64 %w, 1
  %cx = cmpxchg ptr %s, i64 %w, i64 %w1 acq_rel monotonic
  %in = extractvalue { i64, i1 } %cx, 1
  br i1 %in, label %work, label %again
work:
  ; a job for some of the workers has ranges by the order in which they come
  %some = icmp slt i32 %limit, %lim
  %which = select i1 %some, i32 %mine, i32 %rank
  %own = zext i32 %which to i64
  call void @unity_drain(ptr %s, i64 %own)
  br label %leave
leave:
  %x = atomicrmw sub ptr %s, i64 1 release
  br label %top
idle:
  <PAUSE>
  br label %again
again:
  %i1 = add i32 %i, 1
  %spin = load atomic i32, ptr @unity_spin monotonic, align 4
  %hot = icmp slt i32 %i, %spin
  br i1 %hot, label %look, label %park
park:
  %lim2 = load atomic i32, ptr @unity_threads monotonic, align 4
  %keep = icmp slt i32 %rank, %lim2
  br i1 %keep, label %sleep, label %quit
sleep:
  ; announce, look again, sleep if the word is still that
  %a = atomicrmw add ptr %sleepp, i32 1 seq_cst
  %w2 = load atomic i64, ptr %s seq_cst, align 8
  %epoch2 = lshr i64 %w2, <ACTIVE>
  %new2 = icmp ne i64 %epoch2, %last
  %ob2 = and i64 %w2, <OPEN>
  %open2 = icmp ne i64 %ob2, 0
  %can2 = and i1 %new2, %open2
  br i1 %can2, label %awake, label %wait
wait:
  %low = trunc i64 %w2 to i32
  call void @unity_futex(ptr %s, i32 128, i32 %low)
  br label %awake
awake:
  %b = atomicrmw sub ptr %sleepp, i32 1 seq_cst
  br label %top
quit:
  ; the slot first, then ask the next caller to look at the slots
  %slot = getelementptr i8, ptr %s, i64 <at slots>
  %my = getelementptr i8, ptr %slot, i32 %id
  store atomic i8 0, ptr %my release, align 1
  %readyp = getelementptr i8, ptr %s, i64 <at ready>
  store atomic i32 0, ptr %readyp seq_cst, align 4
  ret ptr null
}

; create the workers that are missing (lock held)
define internal void @unity_start(ptr %s) nounwind noinline {
entry:
  %thread = alloca i64
  %mask = alloca [16 x i64]
  %readyp = getelementptr i8, ptr %s, i64 <at ready>
  %slot = getelementptr i8, ptr %s, i64 <at slots>
  store atomic i32 1, ptr %readyp seq_cst, align 4
  %lim = load atomic i32, ptr @unity_threads monotonic, align 4
  ; signals stay with the program's threads
  %m = call i32 @pthread_sigmask(i32 2, ptr @unity_all_signals, ptr %mask)
  br label %each
each:
  %id = phi i32 [ 0, %entry ], [ %rank, %next ]
  %rank = add i32 %id, 1
  %more = icmp slt i32 %rank, %lim
  br i1 %more, label %try, label %out
try:
  %p = getelementptr i8, ptr %slot, i32 %id
  %cx = cmpxchg ptr %p, i8 0, i8 1 acq_rel monotonic
  %free = extractvalue { i8, i1 } %cx, 1
  br i1 %free, label %create, label %next
create:
  %idl = zext i32 %id to i64
  %arg = inttoptr i64 %idl to ptr
  %rc = call i32 @pthread_create(ptr %thread, ptr null, ptr @unity_worker, ptr %arg)
  %bad = icmp ne i32 %rc, 0
  br i1 %bad, label %undo, label %detach
undo:
  ; fewer workers: slower, still correct
  store atomic i8 0, ptr %p release, align 1
  br label %next
detach:
  %h = load i64, ptr %thread
  %d = call i32 @pthread_detach(i64 %h)
  br label %next
next:
  br label %each
out:
  %m2 = call i32 @pthread_sigmask(i32 2, ptr %mask, ptr null)
  ret void
}

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

define internal i64 @unity_now() nounwind {
  %ts = alloca { i64, i64 }
  %r = call i32 @clock_gettime(i32 1, ptr %ts)
  %nsp = getelementptr i64, ptr %ts, i64 1
  %s = load i64, ptr %ts
  %ns = load i64, ptr %nsp
  %m = mul i64 %s, 1000000000
  %t = add i64 %m, %ns
  ret i64 %t
}

; spins per us: the fastest of 8 runs of 1000 spins
define internal i32 @unity_calibrate() nounwind noinline {
entry:
  %dummy = alloca i64
  store i64 0, ptr %dummy
  br label %run
run:
  %k = phi i32 [ 0, %entry ], [ %k1, %ran ]
  %best = phi i64 [ 1000000, %entry ], [ %min, %ran ]
  %t0 = call i64 @unity_now()
  br label %spin
spin:
  %i = phi i32 [ 0, %run ], [ %i1, %spin ]
  %w = load atomic i64, ptr %dummy acquire, align 8
  <PAUSE>
  %i1 = add i32 %i, 1
  %more = icmp slt i32 %i1, 1000
  br i1 %more, label %spin, label %ran
ran:
  %t1 = call i64 @unity_now()
  %dt = sub i64 %t1, %t0
  %pos = call i64 @llvm.smax.i64(i64 %dt, i64 1)
  %min = call i64 @llvm.smin.i64(i64 %best, i64 %pos)
  %k1 = add i32 %k, 1
  %again = icmp slt i32 %k1, 8
  br i1 %again, label %run, label %out
out:
  ; 1000 spins in %min ns
  %per = udiv i64 1000000, %min
  %one = call i64 @llvm.smax.i64(i64 %per, i64 1)
  %r = trunc i64 %one to i32
  ret i32 %r
}
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
declare i32 @llvm.smin.i32(i32, i32)
declare i32 @llvm.smax.i32(i32, i32)

define void @unity_set_threads(i32 %threads, i32 %spin_us) nounwind {
entry:
  %lo = call i32 @llvm.smax.i32(i32 %threads, i32 1)
  %n = call i32 @llvm.smin.i32(i32 %lo, i32 <MAX>)
  %per0 = load atomic i32, ptr @unity_spins_per_us monotonic, align 4
  %fresh = icmp eq i32 %per0, 0
  br i1 %fresh, label %measure, label %set
measure:
  %per1 = call i32 @unity_calibrate()
  store atomic i32 %per1, ptr @unity_spins_per_us monotonic, align 4
  br label %set
set:
  %per = phi i32 [ %per0, %entry ], [ %per1, %measure ]
  %default = icmp slt i32 %spin_us, 0
  %us0 = select i1 %default, i32 1000, i32 %spin_us
  %us = call i32 @llvm.smin.i32(i32 %us0, i32 100000)
  %spins = mul i32 %us, %per
  store atomic i32 %spins, ptr @unity_spin monotonic, align 4
  store atomic i32 %n, ptr @unity_threads seq_cst, align 4
  %s = call ptr @unity_page()
  %nomem = icmp eq ptr %s, null
  br i1 %nomem, label %out, label %tell
tell:
  ; sleeping workers look at the new number
  %readyp = getelementptr i8, ptr %s, i64 <at ready>
  store atomic i32 0, ptr %readyp seq_cst, align 4
  call void @unity_futex(ptr %s, i32 129, i32 2147483647)
  br label %out
out:
  ret void
}

define i32 @unity_thread_count() nounwind {
  %n = load atomic i32, ptr @unity_threads monotonic, align 4
  ret i32 %n
}

define i32 @unity_workers() nounwind {
entry:
  %s = call ptr @unity_page()
  %slot = getelementptr i8, ptr %s, i64 <at slots>
  br label %l
l:
  %i = phi i64 [ 0, %entry ], [ %i1, %l ]
  %a = phi i32 [ 0, %entry ], [ %a1, %l ]
  %p = getelementptr i8, ptr %slot, i64 %i
  %v = load atomic i8, ptr %p monotonic, align 1
  %v4 = zext i8 %v to i32
  %a1 = add i32 %a, %v4
  %i1 = add i64 %i, 1
  %c = icmp slt i64 %i1, <MAX>
  br i1 %c, label %l, label %x
x:
  ret i32 %a1
}
"""
