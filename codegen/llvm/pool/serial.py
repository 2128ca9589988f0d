"""The thread pool where there are no threads: the same functions, tasks in order, as LLVM IR."""

SERIAL = """
define void @unity_set_threads(i32 %threads, i32 %spin_us) nounwind {
  ret void
}

define i32 @unity_thread_count() nounwind {
  ret i32 1
}

define i32 @unity_workers() nounwind {
  ret i32 0
}

define void @unity_parallel_for(ptr %f, ptr %e, i64 %n, i32 %limit) nounwind {
entry:
  %none = icmp slt i64 %n, 1
  br i1 %none, label %end, label %loop
loop:
  %t = phi i64 [ 0, %entry ], [ %t1, %loop ]
  call void %f(ptr %e, i64 %t, i64 %n)
  %t1 = add i64 %t, 1
  %go = icmp slt i64 %t1, %n
  br i1 %go, label %loop, label %end
end:
  ret void
}
"""
