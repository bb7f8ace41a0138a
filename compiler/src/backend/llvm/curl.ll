define void @torre_s0_p0_u1(ptr noundef %group, i64 noundef %count, i64 noundef %lo, i64 noundef %hi) #0 {
entry:
  %some = icmp sgt i64 %count, 0
  %wide = icmp slt i64 %lo, %hi
  %work = and i1 %some, %wide
  br i1 %work, label %start, label %done
start:
  %first = and i64 %lo, -2
  %full = sub i64 %hi, 2
  br label %row
row:
  %g = phi ptr [ %group, %start ], [ %g.next, %next ]
  %left = phi i64 [ %count, %start ], [ %left.next, %next ]
  br label %step
step:
  %z = phi i64 [ %first, %row ], [ %part.next, %part ], [ %main.next, %behind ]
  %started = icmp sge i64 %z, %lo
  %fits = icmp sle i64 %z, %full
  %whole = and i1 %started, %fits
  br i1 %whole, label %ahead, label %part
part:
  %part.p = getelementptr double, ptr %g, i64 %z
  %part.0.p = getelementptr i8, ptr %part.p, i64 576
  %part.0 = load <2 x double>, ptr %part.0.p, align 8
  %part.2.p = getelementptr i8, ptr %part.p, i64 384
  %part.2 = load <2 x double>, ptr %part.2.p, align 8
  %part.3 = call <2 x double> @llvm.fma.v2f64(<2 x double> splat (double 0x3FD999999999999A), <2 x double> %part.2, <2 x double> %part.0)
  %part.5.p = getelementptr i8, ptr %part.p, i64 192
  %part.5 = load <2 x double>, ptr %part.5.p, align 8
  %part.6 = call <2 x double> @llvm.fma.v2f64(<2 x double> splat (double 0xBFD999999999999A), <2 x double> %part.5, <2 x double> %part.3)
  %part.7.p = getelementptr i8, ptr %part.p, i64 200
  %part.7 = load <2 x double>, ptr %part.7.p, align 8
  %part.8 = call <2 x double> @llvm.fma.v2f64(<2 x double> splat (double 0x3FD999999999999A), <2 x double> %part.7, <2 x double> %part.6)
  %part.9.p = getelementptr i8, ptr %part.p, i64 1536
  %part.9 = load <2 x double>, ptr %part.9.p, align 8
  %part.10 = call <2 x double> @llvm.fma.v2f64(<2 x double> splat (double 0xBFD999999999999A), <2 x double> %part.9, <2 x double> %part.8)
  %before = sub i64 %lo, %z
  %before.32 = trunc i64 %before to i32
  %before.0 = insertelement <2 x i32> poison, i32 %before.32, i64 0
  %before.v = shufflevector <2 x i32> %before.0, <2 x i32> poison, <2 x i32> zeroinitializer
  %behind.hi = sub i64 %hi, %z
  %until = call i64 @llvm.smin.i64(i64 %behind.hi, i64 2)
  %until.32 = trunc i64 %until to i32
  %until.0 = insertelement <2 x i32> poison, i32 %until.32, i64 0
  %until.v = shufflevector <2 x i32> %until.0, <2 x i32> poison, <2 x i32> zeroinitializer
  %mask.lo = icmp sge <2 x i32> <i32 0, i32 1>, %before.v
  %mask.hi = icmp slt <2 x i32> <i32 0, i32 1>, %until.v
  %mask = and <2 x i1> %mask.lo, %mask.hi
  %part.t0 = getelementptr i8, ptr %part.p, i64 576
  call void @llvm.masked.store.v2f64.p0(<2 x double> %part.10, ptr align 8 %part.t0, <2 x i1> %mask)
  %part.next = add i64 %z, 2
  %part.more = icmp slt i64 %part.next, %hi
  br i1 %part.more, label %step, label %next
ahead:
  %ahead.p = getelementptr double, ptr %g, i64 %z
  %ahead.w0.0.p = getelementptr i8, ptr %ahead.p, i64 192
  %ahead.w0.0 = load <2 x double>, ptr %ahead.w0.0.p, align 8
  br label %main
main:
  %main.z = phi i64 [ %z, %ahead ], [ %main.next, %main ]
  %main.w0.0 = phi <2 x double> [ %ahead.w0.0, %ahead ], [ %main.w0.1, %main ]
  %main.p = getelementptr double, ptr %g, i64 %main.z
  %main.w0.1.p = getelementptr i8, ptr %main.p, i64 208
  %main.w0.1 = load <2 x double>, ptr %main.w0.1.p, align 8
  %main.0.p = getelementptr i8, ptr %main.p, i64 576
  %main.0 = load <2 x double>, ptr %main.0.p, align 8
  %main.2.p = getelementptr i8, ptr %main.p, i64 384
  %main.2 = load <2 x double>, ptr %main.2.p, align 8
  %main.3 = call <2 x double> @llvm.fma.v2f64(<2 x double> splat (double 0x3FD999999999999A), <2 x double> %main.2, <2 x double> %main.0)
  %main.5 = shufflevector <2 x double> %main.w0.0, <2 x double> %main.w0.0, <2 x i32> <i32 0, i32 1>
  %main.6 = call <2 x double> @llvm.fma.v2f64(<2 x double> splat (double 0xBFD999999999999A), <2 x double> %main.5, <2 x double> %main.3)
  %main.7 = shufflevector <2 x double> %main.w0.0, <2 x double> %main.w0.1, <2 x i32> <i32 1, i32 2>
  %main.8 = call <2 x double> @llvm.fma.v2f64(<2 x double> splat (double 0x3FD999999999999A), <2 x double> %main.7, <2 x double> %main.6)
  %main.9.p = getelementptr i8, ptr %main.p, i64 1536
  %main.9 = load <2 x double>, ptr %main.9.p, align 8
  %main.10 = call <2 x double> @llvm.fma.v2f64(<2 x double> splat (double 0xBFD999999999999A), <2 x double> %main.9, <2 x double> %main.8)
  %main.t0 = getelementptr i8, ptr %main.p, i64 576
  store <2 x double> %main.10, ptr %main.t0, align 8
  %main.next = add i64 %main.z, 2
  %main.again = icmp sle i64 %main.next, %full
  br i1 %main.again, label %main, label %behind
behind:
  %main.more = icmp slt i64 %main.next, %hi
  br i1 %main.more, label %step, label %next
next:
  %g.next = getelementptr i8, ptr %g, i64 1152
  %left.next = sub i64 %left, 1
  %again = icmp sgt i64 %left.next, 0
  br i1 %again, label %row, label %done
done:
  ret void
}
declare <2 x double> @llvm.fma.v2f64(<2 x double>, <2 x double>, <2 x double>)
declare <2 x double> @llvm.sqrt.v2f64(<2 x double>)
declare <2 x double> @llvm.fabs.v2f64(<2 x double>)
declare void @llvm.masked.store.v2f64.p0(<2 x double>, ptr, <2 x i1>)
declare i64 @llvm.smin.i64(i64, i64)
attributes #0 = { nounwind "prefer-vector-width"="128" }
