define void @torre_s0_p0_u1(ptr noundef %base, ptr noundef %runs, i64 noundef %count, i64 noundef %lo, i64 noundef %hi) #0 {
entry:
  %some = icmp sgt i64 %count, 0
  %wide = icmp slt i64 %lo, %hi
  %work = and i1 %some, %wide
  br i1 %work, label %start, label %done
start:
  %first = and i64 %lo, -2
  %full = sub i64 %hi, 2
  %runs.end = getelementptr { i64, i64 }, ptr %runs, i64 %count
  br label %run
run:
  %r = phi ptr [ %runs, %start ], [ %r.next, %behind.run ]
  %offset = load i64, ptr %r
  %groups.p = getelementptr i8, ptr %r, i64 8
  %groups = load i64, ptr %groups.p
  %group = getelementptr i8, ptr %base, i64 %offset
  %any = icmp sgt i64 %groups, 0
  br i1 %any, label %row, label %behind.run
row:
  %g = phi ptr [ %group, %run ], [ %g.next, %next ]
  %left = phi i64 [ %groups, %run ], [ %left.next, %next ]
  br label %step
step:
  %z = phi i64 [ %first, %row ], [ %part.next, %part ], [ %main1.next, %behind1 ]
  %started = icmp sge i64 %z, %lo
  %fits = icmp sle i64 %z, %full
  %whole = and i1 %started, %fits
  %part.next = add i64 %z, 2
  %part.more = icmp slt i64 %part.next, %hi
  br i1 %whole, label %ahead1, label %part
part:
  %part.p = getelementptr double, ptr %g, i64 %z
  %part.0.0.p = getelementptr i8, ptr %part.p, i64 1344
  %part.0.0 = load <2 x double>, ptr %part.0.0.p, align 8
  %part.0.2.p = getelementptr i8, ptr %part.p, i64 896
  %part.0.2 = load <2 x double>, ptr %part.0.2.p, align 8
  %part.0.3 = call <2 x double> @llvm.fma.v2f64(<2 x double> splat (double 0x3FD999999999999A), <2 x double> %part.0.2, <2 x double> %part.0.0)
  %part.0.5.p = getelementptr i8, ptr %part.p, i64 448
  %part.0.5 = load <2 x double>, ptr %part.0.5.p, align 8
  %part.0.6 = call <2 x double> @llvm.fma.v2f64(<2 x double> splat (double 0xBFD999999999999A), <2 x double> %part.0.5, <2 x double> %part.0.3)
  %part.0.7.p = getelementptr i8, ptr %part.p, i64 456
  %part.0.7 = load <2 x double>, ptr %part.0.7.p, align 8
  %part.0.8 = call <2 x double> @llvm.fma.v2f64(<2 x double> splat (double 0x3FD999999999999A), <2 x double> %part.0.7, <2 x double> %part.0.6)
  %part.0.9.p = getelementptr i8, ptr %part.p, i64 1088
  %part.0.9 = load <2 x double>, ptr %part.0.9.p, align 8
  %part.0.10 = call <2 x double> @llvm.fma.v2f64(<2 x double> splat (double 0xBFD999999999999A), <2 x double> %part.0.9, <2 x double> %part.0.8)
  %mask.lo.far = sub i64 %lo, %z
  %mask.lo.below = call i64 @llvm.smax.i64(i64 %mask.lo.far, i64 -1)
  %mask.lo.64 = call i64 @llvm.smin.i64(i64 %mask.lo.below, i64 2)
  %mask.lo.32 = trunc i64 %mask.lo.64 to i32
  %mask.lo.0 = insertelement <2 x i32> poison, i32 %mask.lo.32, i64 0
  %mask.lo.v = shufflevector <2 x i32> %mask.lo.0, <2 x i32> poison, <2 x i32> zeroinitializer
  %mask.lo = icmp sge <2 x i32> <i32 0, i32 1>, %mask.lo.v
  %mask.hi.far = sub i64 %hi, %z
  %mask.hi.below = call i64 @llvm.smax.i64(i64 %mask.hi.far, i64 -1)
  %mask.hi.64 = call i64 @llvm.smin.i64(i64 %mask.hi.below, i64 2)
  %mask.hi.32 = trunc i64 %mask.hi.64 to i32
  %mask.hi.0 = insertelement <2 x i32> poison, i32 %mask.hi.32, i64 0
  %mask.hi.v = shufflevector <2 x i32> %mask.hi.0, <2 x i32> poison, <2 x i32> zeroinitializer
  %mask.hi = icmp slt <2 x i32> <i32 0, i32 1>, %mask.hi.v
  %mask = and <2 x i1> %mask.lo, %mask.hi
  %part.t0 = getelementptr i8, ptr %part.p, i64 1344
  call void @llvm.masked.store.v2f64.p0(<2 x double> %part.0.10, ptr align 8 %part.t0, <2 x i1> %mask)
  br i1 %part.more, label %step, label %next
ahead1:
  %main1.full = sub i64 %full, 0
  %ahead1.p = getelementptr double, ptr %g, i64 %z
  %ahead1.w0.0.p = getelementptr i8, ptr %ahead1.p, i64 448
  %ahead1.w0.0 = load <2 x double>, ptr %ahead1.w0.0.p, align 8
  br label %main1
main1:
  %main1.z = phi i64 [ %z, %ahead1 ], [ %main1.next, %main1 ]
  %main1.w0.0 = phi <2 x double> [ %ahead1.w0.0, %ahead1 ], [ %main1.w0.1, %main1 ]
  %main1.p = getelementptr double, ptr %g, i64 %main1.z
  %main1.w0.1.p = getelementptr i8, ptr %main1.p, i64 464
  %main1.w0.1 = load <2 x double>, ptr %main1.w0.1.p, align 8
  %main1.0.0.p = getelementptr i8, ptr %main1.p, i64 1344
  %main1.0.0 = load <2 x double>, ptr %main1.0.0.p, align 8
  %main1.0.2.p = getelementptr i8, ptr %main1.p, i64 896
  %main1.0.2 = load <2 x double>, ptr %main1.0.2.p, align 8
  %main1.0.3 = call <2 x double> @llvm.fma.v2f64(<2 x double> splat (double 0x3FD999999999999A), <2 x double> %main1.0.2, <2 x double> %main1.0.0)
  %main1.0.5 = shufflevector <2 x double> %main1.w0.0, <2 x double> %main1.w0.0, <2 x i32> <i32 0, i32 1>
  %main1.0.6 = call <2 x double> @llvm.fma.v2f64(<2 x double> splat (double 0xBFD999999999999A), <2 x double> %main1.0.5, <2 x double> %main1.0.3)
  %main1.0.7 = shufflevector <2 x double> %main1.w0.0, <2 x double> %main1.w0.1, <2 x i32> <i32 1, i32 2>
  %main1.0.8 = call <2 x double> @llvm.fma.v2f64(<2 x double> splat (double 0x3FD999999999999A), <2 x double> %main1.0.7, <2 x double> %main1.0.6)
  %main1.0.9.p = getelementptr i8, ptr %main1.p, i64 1088
  %main1.0.9 = load <2 x double>, ptr %main1.0.9.p, align 8
  %main1.0.10 = call <2 x double> @llvm.fma.v2f64(<2 x double> splat (double 0xBFD999999999999A), <2 x double> %main1.0.9, <2 x double> %main1.0.8)
  %main1.t0.0 = getelementptr i8, ptr %main1.p, i64 1344
  store <2 x double> %main1.0.10, ptr %main1.t0.0, align 8
  %main1.next = add i64 %main1.z, 2
  %main1.again = icmp sle i64 %main1.next, %main1.full
  br i1 %main1.again, label %main1, label %behind1
behind1:
  %main1.more = icmp slt i64 %main1.next, %hi
  br i1 %main1.more, label %step, label %next
next:
  %g.next = getelementptr i8, ptr %g, i64 192
  %left.next = sub i64 %left, 1
  %again = icmp sgt i64 %left.next, 0
  br i1 %again, label %row, label %behind.run
behind.run:
  %r.next = getelementptr i8, ptr %r, i64 16
  %r.more = icmp ult ptr %r.next, %runs.end
  br i1 %r.more, label %run, label %done
done:
  ret void
}
declare <2 x double> @llvm.fma.v2f64(<2 x double>, <2 x double>, <2 x double>)
declare <2 x double> @llvm.sqrt.v2f64(<2 x double>)
declare <2 x double> @llvm.fabs.v2f64(<2 x double>)
declare void @llvm.masked.store.v2f64.p0(<2 x double>, ptr, <2 x i1>)
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
attributes #0 = { nounwind "prefer-vector-width"="128" }
