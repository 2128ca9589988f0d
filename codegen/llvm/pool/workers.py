"""The thread pool's workers: how they begin, wait, join jobs and end (see `threaded`)."""

WORKERS = """
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
"""
