/* format/dtype.h: names of onnx.TensorProto.DataType, in lower case as the manifest has them. Private to src/format. */
#ifndef OC_FORMAT_DTYPE_H
#define OC_FORMAT_DTYPE_H

/* NULL for a type that is undefined or not known. A constant. */
const char *oc_dtype_text(int dtype);
/* 0 (undefined) for a name that is not known. */
int oc_dtype_find(const char *text);

#endif
