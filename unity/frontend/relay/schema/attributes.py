"""The attributes that Relay's operators have: names, kinds and defaults.

Relay's text holds those alone that differ from their defaults, so the defaults are part of the
format. Taken from the declarations of TVM 0.18 (``TVM_DECLARE_ATTRS`` in ``include/tvm/relay``,
Apache-2.0), which are those of 0.7 to 0.19 but for the fields that older versions had on top
(``reverse`` of Reshape, ``pad_value`` of Pad, ``max_output_size`` of NonMaximumSuppression).

A row is a struct without the ``Attrs`` of its name. A field is ``name:kind=default``; ``?`` instead
of a default means that it may be left out, which is None, and neither that it must be given.
`check` says what the kinds are.
"""

ATTRIBUTES = """
AdaptivePool1D: output_size:ints= layout:str=NCW out_layout:str=
AdaptivePool2D: output_size:ints= layout:str=NCHW out_layout:str=
AdaptivePool3D: output_size:ints= layout:str=NCDHW out_layout:str=
AffineGrid: target_shape:ints
AllClassNonMaximumSuppression: output_format:str=onnx
Arange: start:any? stop:any? step:any? dtype:dtype
ArgReduce: axis:ints? keepdims:bool=0 select_last_index:bool=0 exclude:bool=0
Argsort: axis:int=-1 is_ascend:bool=1 dtype:dtype?
AutoSchedulerLayoutTransform: src_layout:str dst_layout:str
AvgPool1D: pool_size:ints strides:ints=1 dilation:ints=1 padding:ints=0 layout:str=NCW
    out_layout:str= ceil_mode:bool=0 count_include_pad:bool=0
AvgPool2D: pool_size:ints strides:ints=1,1 dilation:ints=1,1 padding:ints=0,0 layout:str=NCHW
    out_layout:str= ceil_mode:bool=0 count_include_pad:bool=0
AvgPool3D: pool_size:ints strides:ints=1,1,1 dilation:ints=1,1,1 padding:ints=0,0,0
    layout:str=NCDHW out_layout:str= ceil_mode:bool=0 count_include_pad:bool=0
BatchMatmul: out_dtype:dtype? transpose_a:bool=0 transpose_b:bool=0
BatchNorm: axis:int=1 epsilon:float=1e-5 center:bool=1 scale:bool=1
BatchToSpaceND: block_shape:ints=1,1 crops:pairs
BiasAdd: axis:int=1
BinaryConv2D: strides:ints=1,1 padding:ints=0,0 kernel_size:ints=3,3 channels:int?
    activation_bits:int=1 weight_bits:int=1 data_layout:str=NCHW kernel_layout:str=OIHW
    pack_dtype:dtype? out_dtype:dtype? unipolar:bool=1
BinaryDense: units:int? data_bits:int=1 weight_bits:int=1 pack_dtype:dtype? out_dtype:dtype?
    unipolar:bool=1
BitPack: bits:int=1 pack_axis:int=1 bit_axis:int=-1 pack_type:dtype? name:str=BitPack
Broadcast: lhs_axis:int=-1 rhs_axis:int=-1
CallLowered: metadata:any?
Cast: dtype:dtype
CastHint: dtype:dtype
Clip: a_min:float a_max:float
Compiler: compiler:str
Concatenate: axis:int=0
Conv1D: strides:ints=1 padding:ints=0,0 dilation:ints=1 groups:int=1 channels:int?
    kernel_size:ints? data_layout:str=NCW kernel_layout:str=OIW out_layout:str= out_dtype:dtype?
Conv1DTranspose: channels:int? kernel_size:ints? strides:ints=1 output_padding:ints=0
    padding:ints=0 dilation:ints=1 groups:int=1 data_layout:str=NCW kernel_layout:str=IOW
    out_layout:str= out_dtype:dtype?
Conv2D: strides:ints=1,1 padding:ints=0,0 dilation:ints=1,1 groups:int=1 channels:int?
    kernel_size:ints? data_layout:str=NCHW kernel_layout:str=OIHW out_layout:str= out_dtype:dtype?
Conv2DTranspose: channels:int? kernel_size:ints? strides:ints=1,1 output_padding:ints=0,0
    padding:ints=0,0 dilation:ints=1,1 groups:int=1 data_layout:str=NCHW kernel_layout:str=IOHW
    out_layout:str= out_dtype:dtype?
Conv2DWinograd: tile_size:int strides:ints=1,1 padding:ints=0,0 dilation:ints=1,1 groups:int=1
    channels:int? kernel_size:ints? data_layout:str=NCHW kernel_layout:str=OIHW out_layout:str=
    out_dtype:dtype?
Conv2DWinogradNNPACKWeightTransform: convolution_algorithm:int out_dtype:dtype?
Conv3D: strides:ints=1,1,1 padding:ints=0,0,0 dilation:ints=1,1,1 groups:int=1 channels:int?
    kernel_size:ints? data_layout:str=NCDHW kernel_layout:str=OIDHW out_layout:str=
    out_dtype:dtype?
Conv3DTranspose: channels:int? kernel_size:ints? strides:ints=1,1,1 output_padding:ints=0,0,0
    padding:ints=0,0,0 dilation:ints=1,1,1 groups:int=1 data_layout:str=NCDHW
    kernel_layout:str=IODHW out_layout:str= out_dtype:dtype?
Conv3DWinograd: tile_size:int strides:ints=1,1,1 padding:ints=0,0,0 dilation:ints=1,1,1
    groups:int=1 channels:int? kernel_size:ints? data_layout:str=NCDHW kernel_layout:str=OIDHW
    out_layout:str= out_dtype:dtype?
ConvGemmWeightTransform: tile_N:int tile_K:int
ConvWinogradWeightTransform: tile_size:int
Correlation: kernel_size:int=1 max_displacement:int=1 stride1:int=1 stride2:int=1 padding:ints=0,0
    is_multiply:bool=1 layout:str=NCHW
CropAndResize: crop_size:ints? layout:str=NCHW method:str=bilinear extrapolation_value:float=0
    out_dtype:dtype?
DFT: inverse:bool=0
Debug: debug_func:any?
DeformableConv2D: strides:ints=1,1 padding:ints=0,0 dilation:ints=1,1 deformable_groups:int=1
    groups:int=1 channels:int? kernel_size:ints? data_layout:str=NCHW kernel_layout:str=OIHW
    out_layout:str= out_dtype:dtype?
Dense: units:int? out_dtype:dtype?
DensePack: units:int? out_dtype:dtype? weight_layout:str=NC
Dequantize: out_dtype:dtype? axis:int=-1
DeviceCopy: src_virtual_device:any? dst_virtual_device:any?
Dilate: strides:ints=1,1 dilation_value:float=0
Dilation2D: strides:ints=1,1 padding:ints=0,0 dilations:ints=1,1 data_layout:str=NCHW
    kernel_layout:str=IHW out_dtype:dtype?
Dropout: rate:float=0.5
DynExpandDims: num_newaxis:int=1
Einsum: equation:str
ExpandDims: axis:int num_newaxis:int=1
FIFOBuffer: axis:int=0
FixedPointMultiply: multiplier:int shift:int
FixedPointMultiplyPerAxis: is_lshift_required:bool=0 is_rshift_required:bool=0 axes:ints
Gather: axis:int
GatherND: batch_dims:int=0 index_rank:int?
GetValidCounts: score_threshold:float? id_index:int=0 score_index:int=1
GlobalPool2D: layout:str=NCHW out_layout:str=
GridSample: method:str=bilinear layout:str=NCHW padding_mode:str=zeros align_corners:bool=1
GroupNorm: num_groups:int=0 axis:int=1 epsilon:float=1e-5 center:bool=1 scale:bool=1
InitOp: shape:ints dtype:dtype?
InstanceNorm: axis:int=1 epsilon:float=1e-5 center:bool=1 scale:bool=1
L2Normalize: eps:float axis:ints
LRN: size:int=5 axis:int=1 bias:float=2 alpha:float=0.0001 beta:float=0.75
LayerNorm: axis:int=-1 epsilon:float=1e-5 center:bool=1 scale:bool=1
LayoutTransform: src_layout:str dst_layout:str
LeakyRelu: alpha:float=0.25
Matmul: units:int? out_dtype:dtype? transpose_a:bool=0 transpose_b:bool=0
MatrixSetDiag: k1:int=0 k2:int=0 super_diag_right_align:bool=1 sub_diag_right_align:bool=0
MaxPool1D: pool_size:ints strides:ints=1 dilation:ints=1 padding:ints=0 layout:str=NCW
    out_layout:str= ceil_mode:bool=0
MaxPool2D: pool_size:ints strides:ints=1,1 dilation:ints=1,1 padding:ints=0,0 layout:str=NCHW
    out_layout:str= ceil_mode:bool=0
MaxPool3D: pool_size:ints strides:ints=1,1,1 dilation:ints=1,1,1 padding:ints=0,0,0
    layout:str=NCDHW out_layout:str= ceil_mode:bool=0
Meshgrid: indexing:str=ij
MetaScheduleLayoutTransform: index_map:any?
MirrorPad: mode:str=SYMMETRIC pad_width:pairs
MultiBoxPrior: sizes:floats=1 ratios:floats=1 steps:floats=-1,-1 offsets:floats=0.5,0.5
    clip:bool=0
MultiBoxTransformLoc: clip:bool=1 threshold:float=0.01 variances:floats=0.1,0.1,0.2,0.2
    keep_background:bool=0
Multinomial: num_samples:int=1
NLLLoss: reduction:str=mean ignore_index:int
NdarraySize: dtype:dtype?
NonMaximumSuppression: force_suppress:bool=0 top_k:int=-1 coord_start:int=2 score_index:int=1
    id_index:int=0 return_indices:bool=1 invalid_to_bottom:bool=0 max_output_size:int?
    iou_threshold:float?
Normal: out_shape:ints out_dtype:dtype?
OnDevice: virtual_device:any? constrain_result:bool=0 constrain_body:bool=1
OneHot: depth:int=1 axis:int=-1 dtype:dtype?
PRelu: axis:int=1
Pad: pad_width:pairs pad_mode:str=constant pad_value:float?
Proposal: scales:floats=4,8,16,32 ratios:floats=0.5,1,2 feature_stride:int=16 threshold:float=0.7
    rpn_pre_nms_top_n:int=6000 rpn_post_nms_top_n:int=300 rpn_min_size:int=16 iou_loss:bool=0
Quantize: out_dtype:dtype axis:int=-1
ROIAlign: pooled_size:ints spatial_scale:float sample_ratio:int=-1 layout:str=NCHW mode:str=avg
ROIPool: pooled_size:ints spatial_scale:float layout:str=NCHW
Reduce: axis:ints? keepdims:bool=0 exclude:bool=0
RegularNonMaximumSuppression: max_detections_per_class:int max_detections:int num_classes:int
    iou_threshold:float score_threshold:float
Repeat: repeats:int axis:int?
Requantize: axis:int=-1 rounding:str=None compute_dtype:str=None out_dtype:dtype?
Reshape: newshape:ints allowzero:bool=0 reverse:bool=0
ReshapeLike: lhs_begin:int=0 lhs_end:int? rhs_begin:int=0 rhs_end:int?
ReshapeTensor: newshape:any?
Resize1D: size:ints? roi:floats? layout:str=NCW method:str=linear
    coordinate_transformation_mode:str=half_pixel rounding_method:str=round cubic_alpha:float=-0.5
    cubic_exclude:int=0 extrapolation_value:float=0 out_dtype:dtype?
Resize2D: size:ints? roi:floats? layout:str=NCHW method:str=linear
    coordinate_transformation_mode:str=half_pixel rounding_method:str=round cubic_alpha:float=-0.5
    cubic_exclude:int=0 extrapolation_value:float=0 out_dtype:dtype?
Resize3D: size:ints? roi:floats? layout:str=NCDHW method:str=linear
    coordinate_transformation_mode:str=half_pixel rounding_method:str=round cubic_alpha:float=-0.5
    cubic_exclude:int=0 extrapolation_value:float=0 out_dtype:dtype?
Reverse: axis:int?
ReverseSequence: seq_axis:int=1 batch_axis:int=0
Scanop: axis:int? dtype:dtype? exclusive:bool=0
ScatterElements: axis:int=0 reduction:str=update
ScatterND: mode:str=update
SearchSorted: right:bool=0 dtype:dtype=int32
SequenceMask: mask_value:float=0 axis:int=0
ShapeFunc: is_input:ints
ShapeOf: dtype:dtype?
SimulatedQuantize: axis:int=-1
SimulatedQuantizeOld: kind:int sign:bool=1 rounding:str=round
SliceLike: axes:ints?
SlidingWindow: axis:int window_shape:ints strides:ints
Softmax: axis:int=-1
SpaceToBatchND: block_shape:ints=1,1 paddings:pairs pad_value:float=0
SparseConv2D: layout:str=NHWC kernel_size:ints=1,1
SparseDense: sparse_lhs:bool=0
SparseToDense: output_shape:ints
SparseTranspose: layout:str=NHWC kernel_size:ints=1,1
Split: indices_or_sections:sections axis:int=0
Squeeze: axis:ints?
Stack: axis:int=0
Stft: n_fft:int=-1 hop_length:int=-1 win_length:int=-1 normalized:bool=0 onesided:bool=1
StridedSlice: begin:ints end:ints strides:ints? slice_mode:str=end axes:ints?
SubPixel: block_size:int=1 layout:str=NCHW mode:str=DCR
Take: batch_dims:int=0 axis:int? mode:str=clip
ThreefryGenerate: out_shape:ints
Tile: reps:ints
TopK: k:int axis:int=-1 ret_type:str=both is_ascend:bool=0 dtype:dtype?
Transpose: axes:ints?
Trilu: upper:bool=1
Uniform: out_shape:ints out_dtype:dtype?
Unique: sorted:bool=1 return_counts:bool=0
UpSampling: scale_h:float=1 scale_w:float=1 layout:str=NCHW method:str=nearest_neighbor
    align_corners:bool=0
UpSampling3D: scale_d:float=1 scale_h:float=1 scale_w:float=1 layout:str=NCDHW
    method:str=nearest_neighbor coordinate_transformation_mode:str=half_pixel
Variance: axis:ints? keepdims:bool=0 exclude:bool=0 unbiased:bool=0
YoloReorg: stride:int=1
"""
