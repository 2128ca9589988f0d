"""How many threads the pool has and how long they spin, set and asked for (see `threaded`)."""

SETTINGS = """
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
