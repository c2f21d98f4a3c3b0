/* Loads a SavedModel through the TensorFlow C API, as a model server does, runs it on strings and
 * prints the outputs.
 *
 *   c_loader MODEL_DIR ROWS_FILE NUM_INPUTS INPUT... OUTPUT...
 *
 * INPUT and OUTPUT are tensors such as serving_default_text:0. ROWS_FILE holds, for each input, the
 * number of rows, then each row as its length and its bytes; numbers are uint32 of this machine.
 * Each output is one line: its type ("float", "int32" or "string"), the number of its dimensions,
 * the dimensions, the values; bytes of strings in hexadecimal, and "-" for an empty one.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensorflow/c/c_api.h"

enum { MAX_TENSORS = 8 };

static void fail(const char* what) {
  fprintf(stderr, "%s\n", what);
  exit(1);
}

static void check(TF_Status* status) {
  if (TF_GetCode(status) != TF_OK) fail(TF_Message(status));
}

static uint32_t read_number(FILE* file) {
  uint32_t number;
  if (fread(&number, sizeof number, 1, file) != 1) fail("ROWS_FILE ends too early");
  return number;
}

static TF_Tensor* read_rows(FILE* file) {
  const int64_t rows = read_number(file);
  TF_Tensor* tensor = TF_AllocateTensor(TF_STRING, &rows, 1, (size_t)rows * sizeof(TF_TString));
  TF_TString* strings = TF_TensorData(tensor);
  for (int64_t row = 0; row < rows; ++row) {
    const uint32_t length = read_number(file);
    char* bytes = malloc(length + 1);
    if (bytes == NULL || fread(bytes, 1, length, file) != length) fail("ROWS_FILE ends too early");
    TF_StringInit(&strings[row]);
    TF_StringCopy(&strings[row], bytes, length);
    free(bytes);
  }
  return tensor;
}

static TF_Output find(TF_Graph* graph, const char* name) {
  char operation[256];
  const char* colon = strrchr(name, ':');
  if (colon == NULL || (size_t)(colon - name) >= sizeof operation) fail("a tensor is name:index");
  memcpy(operation, name, (size_t)(colon - name));
  operation[colon - name] = '\0';
  TF_Output output = {TF_GraphOperationByName(graph, operation), atoi(colon + 1)};
  if (output.oper == NULL) fail("the graph has no such operation");
  return output;
}

static void print_string(const TF_TString* string) {
  const unsigned char* bytes = (const unsigned char*)TF_StringGetDataPointer(string);
  const size_t size = TF_StringGetSize(string);
  printf(size == 0 ? " -" : " ");
  for (size_t i = 0; i < size; ++i) printf("%02x", bytes[i]);
}

static void print_tensor(const TF_Tensor* tensor) {
  const TF_DataType type = TF_TensorType(tensor);
  const int64_t count = TF_TensorElementCount(tensor);
  if (type != TF_FLOAT && type != TF_INT32 && type != TF_STRING) fail("an output has another type");
  printf("%s %d", type == TF_FLOAT ? "float" : type == TF_INT32 ? "int32" : "string",
         TF_NumDims(tensor));
  for (int d = 0; d < TF_NumDims(tensor); ++d) printf(" %lld", (long long)TF_Dim(tensor, d));
  for (int64_t i = 0; i < count; ++i) {
    if (type == TF_FLOAT) printf(" %.9g", ((const float*)TF_TensorData(tensor))[i]);
    if (type == TF_INT32) printf(" %d", (int)((const int32_t*)TF_TensorData(tensor))[i]);
    if (type == TF_STRING) print_string((const TF_TString*)TF_TensorData(tensor) + i);
  }
  printf("\n");
}

int main(int argc, char** argv) {
  if (argc < 6) fail("usage: c_loader MODEL_DIR ROWS_FILE NUM_INPUTS INPUT... OUTPUT...");
  const int num_inputs = atoi(argv[3]), num_outputs = argc - 4 - num_inputs;
  if (num_inputs < 1 || num_inputs > MAX_TENSORS || num_outputs < 1 || num_outputs > MAX_TENSORS)
    fail("one to eight inputs and outputs");

  TF_Status* status = TF_NewStatus();
  TF_Graph* graph = TF_NewGraph();
  TF_SessionOptions* options = TF_NewSessionOptions();
  const char* tags[] = {"serve"};
  TF_Session* session = TF_LoadSessionFromSavedModel(options, NULL, argv[1], tags, 1, graph, NULL,
                                                     status);
  check(status);

  FILE* file = fopen(argv[2], "rb");
  if (file == NULL) fail("ROWS_FILE cannot be read");
  TF_Output inputs[MAX_TENSORS], outputs[MAX_TENSORS];
  TF_Tensor *fed[MAX_TENSORS], *fetched[MAX_TENSORS];
  for (int i = 0; i < num_inputs; ++i) {
    inputs[i] = find(graph, argv[4 + i]);
    fed[i] = read_rows(file);
  }
  fclose(file);
  for (int i = 0; i < num_outputs; ++i) outputs[i] = find(graph, argv[4 + num_inputs + i]);

  TF_SessionRun(session, NULL, inputs, fed, num_inputs, outputs, fetched, num_outputs, NULL, 0,
                NULL, status);
  check(status);
  for (int i = 0; i < num_outputs; ++i) {
    print_tensor(fetched[i]);
    TF_DeleteTensor(fetched[i]);
  }
  for (int i = 0; i < num_inputs; ++i) TF_DeleteTensor(fed[i]);

  TF_CloseSession(session, status);
  check(status);
  TF_DeleteSession(session, status);
  TF_DeleteSessionOptions(options);
  TF_DeleteGraph(graph);
  TF_DeleteStatus(status);
  return 0;
}
