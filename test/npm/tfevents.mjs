// Events of a file of TensorBoard, one per line as JSON, read by packages that know nothing of lull: `tfrecord` takes the
// records apart and checks their sums, `protobufjs` decodes them by the fields that TensorFlow's event.proto documents.
//
// Usage: tfevents.mjs FILE
import protobuf from "protobufjs";
import reader from "tfrecord/lib/record_reader.js";

const { root } = protobuf.parse(`syntax = "proto3";
message Tensor { int32 dtype = 1; repeated bytes string_val = 8; }
message PluginData { string plugin_name = 1; }
message Metadata { PluginData plugin_data = 1; }
message Value { string tag = 1; float simple_value = 2; Tensor tensor = 8; Metadata metadata = 9; }
message Summary { repeated Value value = 1; }
message Event { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5; }`, { keepCase: true });
const Event = root.lookupType("Event");

const records = await reader.RecordReader.create(process.argv[2]);
for (let record; (record = await records.readRecord());)
	console.log(JSON.stringify(Event.toObject(Event.decode(record), { longs: Number, bytes: String })));
