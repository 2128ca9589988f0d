"""Relay's operators: the arguments each takes and the struct of its attributes.

Taken from the registrations of TVM 0.18 (``RELAY_REGISTER_OP`` and its macros, Apache-2.0). A row
is ``Struct(arguments): operators``. ``-`` stands for no attributes, ``*`` for any, unchecked: of
lowered forms and hardware that nobody translates; ``...`` are any arguments. One in brackets may be
left out: other versions of TVM had it as an attribute, or not at all.
"""

OPERATORS = """
*(...): torch_op
*(data): annotation.on_device
*(func): annotation.with_funcid
*(ifm, ifm2, lut): contrib.ethosu.binary_elementwise
*(ifm, weight, scale_bias, lut): contrib.ethosu.conv2d contrib.ethosu.depthwise_conv2d
*(ifm, lut): contrib.ethosu.identity contrib.ethosu.pooling contrib.ethosu.unary_elementwise
*(size, shape, alignment): memory.alloc_storage
*(storage, offset, shape): memory.alloc_tensor
*(): memory.shape_func parser.MetaRef
-(x): abs acos acosh asin asinh atan atanh bitwise_not ceil copy cos cosh erf exp fast_erf
    fast_exp fast_tanh floor isfinite isinf isnan log log10 log2 logical_not negative ones_like
    round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc zeros_like
-(lhs, rhs): add bitwise_and bitwise_or bitwise_xor divide equal floor_divide floor_mod greater
    greater_equal left_shift less less_equal logical_and logical_or logical_xor maximum minimum
    mod multiply not_equal power right_shift subtract trunc_divide trunc_mod
-(inputs): adv_index
-(data): annotation.bitpack_end annotation.bitpack_start annotation.checkpoint
    annotation.stop_fusion invert_permutation nn.batch_flatten nn.relu
-(condition): argwhere
-(data, broadcast_type): broadcast_to_like
-(data, dtype_like): cast_like
-(data, collapse_type): collapse_sum_like
-(data, shape): collapse_sum_to unravel_index
-(sparse_indices, sparse_values, default_value, output_shape): dyn.sparse_to_dense
-(data, fill_value): full_like
-(to_free): memory.kill
-(x, y): nn.cross_entropy nn.cross_entropy_with_logits
-(dense_data, sparse_data, sparse_indices, sparse_indptr): nn.sparse_add
-(x, scale, zero_point, output_scale, output_zero_point): qnn.abs qnn.erf qnn.exp qnn.hardswish
    qnn.log qnn.rsqrt qnn.sigmoid qnn.sqrt qnn.tanh
-(key): random.threefry_split
-(sparse_indices, sparse_values, dense_shape, [default_value]): sparse_fill_empty_rows
-(sparse_indices, prev_shape, new_shape): sparse_reshape
-(data, v, begin, end, strides): strided_set
-(op, ins, outs): vm.invoke_tvm_op
-(condition, x, y): where
AdaptivePool1D(data): nn.adaptive_avg_pool1d nn.adaptive_max_pool1d
AdaptivePool2D(data): nn.adaptive_avg_pool2d nn.adaptive_max_pool2d
AdaptivePool3D(data): nn.adaptive_avg_pool3d nn.adaptive_max_pool3d
AffineGrid(data): image.affine_grid
AllClassNonMaximumSuppression(boxes, scores, max_output_boxes_per_class, iou_threshold,
    score_threshold): vision.all_class_non_max_suppression
Arange(start, end, step): arange
ArgReduce(data): argmax argmin
Argsort(data): argsort sort
AutoSchedulerLayoutTransform(data): auto_scheduler_layout_transform
AvgPool1D(data): nn.avg_pool1d
AvgPool2D(data): nn.avg_pool2d
AvgPool2D(data, input_scale, input_zero_point, output_scale, output_zero_point): qnn.avg_pool2d
AvgPool3D(data): nn.avg_pool3d
BatchMatmul(tensor_a, tensor_b): nn.batch_matmul
BatchMatmul(x, y, x_scale, x_zero_point, y_scale, y_zero_point): qnn.batch_matmul
BatchNorm(data, gamma, beta, moving_mean, moving_var): nn.batch_norm
BatchToSpaceND(data): nn.batch_to_space_nd
BiasAdd(data, bias): nn.bias_add
BinaryConv2D(data, weight): nn.bitserial_conv2d
BinaryDense(data, weight): nn.bitserial_dense
BitPack(data): nn.bitpack
Broadcast(lhs, rhs, lhs_scale, lhs_zero_point, rhs_scale, rhs_zero_point, output_scale,
    output_zero_point): qnn.add qnn.multiply qnn.subtract
CallLowered(func, call_args): call_lowered
Cast(data): cast reinterpret
CastHint(data): annotation.cast_hint
Clip(data): clip
Compiler(data): annotation.compiler_begin annotation.compiler_end
Concatenate(data): concatenate
Concatenate(data, input_scales, input_zero_points, output_scale, output_zero_point):
    qnn.concatenate
Conv1D(data, weight): nn.conv1d
Conv1DTranspose(data, weight): nn.conv1d_transpose
Conv2D(data, weight): nn.contrib_conv2d_NCHWc nn.contrib_conv2d_NCHWc_int8
    nn.contrib_conv2d_gemm_without_weight_transform nn.contrib_depthwise_conv2d_NCHWc nn.conv2d
Conv2D(grad, data): nn.conv2d_backward_weight
Conv2D(data, weight, input_scale, input_zero_point, weight_scale, weight_zero_point): qnn.conv2d
Conv2DTranspose(data, weight): nn.conv2d_transpose
Conv2DTranspose(data, weight, input_scale, input_zero_point, weight_scale, weight_zero_point):
    qnn.conv2d_transpose
Conv2DWinograd(data, weight): nn.contrib_conv2d_winograd_without_weight_transform
Conv2DWinogradNNPACKWeightTransform(weight): nn.contrib_conv2d_winograd_nnpack_weight_transform
Conv3D(data, weight): nn.conv3d
Conv3DTranspose(data, weight): nn.conv3d_transpose
Conv3DWinograd(data, weight): nn.contrib_conv3d_winograd_without_weight_transform
ConvGemmWeightTransform(weights): nn.contrib_conv2d_gemm_weight_transform
ConvWinogradWeightTransform(weight): nn.contrib_conv2d_winograd_weight_transform
    nn.contrib_conv3d_winograd_weight_transform
Correlation(data1, data2): nn.correlation
CropAndResize(data, boxes, box_indices): image.crop_and_resize
DFT(re_data, im_data): dft
Debug(program): debug
DeformableConv2D(data, offset, weight): nn.deformable_conv2d
Dense(data, weight): nn.dense
DensePack(data, weight): nn.contrib_dense_pack
Dense(data, weight, input_scale, input_zero_point, weight_scale, weight_zero_point): qnn.dense
DensePack(data, weight, input_scale, input_zero_point, weight_scale, weight_zero_point):
    qnn.contrib_dense_pack
Dequantize(data, input_scale, input_zero_point): qnn.dequantize
Dequantize(data, in_dtype, input_scale, input_zero_point): qnn.simulated_dequantize
DeviceCopy(data): device_copy
Dilate(x): nn.dilate
Dilation2D(data, weight): image.dilation2d
Dropout(data): nn.dropout
DynExpandDims(data, axis): dyn.expand_dims
Einsum(data): einsum
ExpandDims(data): expand_dims
FIFOBuffer(data, buffer): nn.fifo_buffer
FixedPointMultiply(data): fixed_point_multiply
FixedPointMultiplyPerAxis(data, fp_multiplier, left_shift, right_shift):
    fixed_point_multiply_per_axis
Gather(data, indices): gather
GatherND(data, indices): gather_nd
GetValidCounts(data, [score_threshold]): vision.get_valid_counts
GlobalPool2D(data): nn.global_avg_pool2d nn.global_max_pool2d
GridSample(data, grid): image.grid_sample
GroupNorm(data, gamma, beta): nn.group_norm
InitOp(data): broadcast_to
InitOp(data, shape): dyn.broadcast_to
InitOp(fill_value, shape): dyn.full
InitOp(shape): dyn.ones dyn.zeros
InitOp(fill_value): full
InitOp(): ones zeros
InstanceNorm(data, gamma, beta): nn.instance_norm
L2Normalize(data): nn.l2_normalize
LRN(data): nn.lrn
LayerNorm(data, gamma, beta): nn.layer_norm
LayoutTransform(data): layout_transform
LeakyRelu(data): nn.leaky_relu
LeakyRelu(data, input_scale, input_zero_point, output_scale, output_zero_point): qnn.leaky_relu
Matmul(tensor_a, tensor_b): nn.matmul
MatrixSetDiag(input, diagonal): matrix_set_diag
MaxPool1D(data): nn.max_pool1d
MaxPool2D(data, grad): nn.avg_pool2d_grad nn.max_pool2d_grad
MaxPool2D(data): nn.max_pool2d
MaxPool3D(data): nn.max_pool3d
Meshgrid(data): meshgrid
MetaScheduleLayoutTransform(data): meta_schedule_layout_transform
MirrorPad(data): nn.mirror_pad
MultiBoxPrior(data): vision.multibox_prior
MultiBoxTransformLoc(cls_prob, loc_pred, anchor): vision.multibox_transform_loc
Multinomial(key, probs): random.multinomial
NLLLoss(predictions, targets, weights): nn.nll_loss
NdarraySize(data): ndarray_size
NonMaximumSuppression(data, valid_count, [indices], [max_output_size], [iou_threshold]):
    vision.non_max_suppression
Normal(key, mean, scale): random.normal
OnDevice(body): on_device
OneHot(indices, on_value, off_value, depth): dyn.one_hot
OneHot(indices, on_value, off_value): one_hot
PRelu(data, alpha): nn.prelu
Pad(data, pad_width, pad_val): dyn.nn.pad
Pad(data, [pad_val]): nn.pad
Proposal(cls_prob, bbox_pred, im_info): vision.proposal
Quantize(data, output_scale, output_zero_point): qnn.quantize
ROIAlign(data, rois): vision.roi_align
ROIPool(data, rois): vision.roi_pool
Reduce(data): all any logsumexp max mean min prod sum
RegularNonMaximumSuppression(boxes, scores): vision.regular_non_max_suppression
Repeat(data): repeat
Requantize(data, input_scale, input_zero_point, output_scale, output_zero_point): qnn.requantize
Reshape(data): contrib_reverse_reshape reshape
Reshape(data, newshape): dyn.reshape
ReshapeLike(data, shape_like): reshape_like
ReshapeTensor(data, shape): vm.reshape_tensor
Resize1D(data): image.resize1d
Resize2D(data, size, roi): dyn.image.resize2d
Resize2D(data): image.resize2d
Resize3D(data): image.resize3d
Reverse(data): reverse
ReverseSequence(data, seq_lengths): reverse_sequence
Scanop(data): cumprod cumsum
ScatterElements(data, indices, updates): scatter_elements
ScatterND(data, indices, updates): scatter_nd
SearchSorted(sorted_sequence, values): searchsorted
SequenceMask(data, valid_length): sequence_mask
ShapeFunc(func, ins, outs): vm.shape_func
ShapeOf(data): shape_of
ShapeOf(tensor): vm.shape_of
SimulatedQuantize(data, out_dtype, output_scale, output_zero_point): qnn.simulated_quantize
SimulatedQuantizeOld(data, dom_scale, clip_min, clip_max): relay.op.annotation.simulated_quantize
SliceLike(data, shape_like): slice_like
SlidingWindow(data): sliding_window
Softmax(data): nn.fast_softmax nn.log_softmax nn.softmax
Softmax(data, scale, zero_point, output_scale, output_zero_point): qnn.softmax
SpaceToBatchND(data): nn.space_to_batch_nd
SparseConv2D(dense_data, sparse_data, sparse_indices, sparse_indptr): nn.sparse_conv2d
SparseDense(data, weight_data, weight_indices, weight_indptr): nn.internal.sparse_dense_padded
SparseDense(dense_data, sparse_data, sparse_indices, sparse_indptr): nn.sparse_dense
SparseToDense(sparse_indices, sparse_values, default_value): sparse_to_dense
SparseTranspose(sparse_data, sparse_indices, sparse_indptr): nn.sparse_transpose
Split(data): split
Squeeze(data, axes): dyn.squeeze
Squeeze(data): squeeze
Stack(data): stack
Stft(data, window): stft
StridedSlice(data, begin, end, strides): dyn.strided_slice
StridedSlice(data, [begin], [end], [strides]): strided_slice
SubPixel(data): nn.depth_to_space nn.space_to_depth
Take(data, indices): take
ThreefryGenerate(key): random.threefry_generate
Tile(data, reps): dyn.tile
Tile(data): tile
TopK(data, k): dyn.topk
TopK(data): topk
Transpose(data): transpose
Trilu(data, k): trilu
Uniform(key, low, high): random.uniform
Unique(data): unique
UpSampling(data, scale_h, scale_w): dyn.nn.upsampling
UpSampling(data): nn.upsampling
UpSampling3D(data, scale_d, scale_h, scale_w): dyn.nn.upsampling3d
UpSampling3D(data): nn.upsampling3d
Variance(data, mean): variance
YoloReorg(data): vision.yolo_reorg
"""
