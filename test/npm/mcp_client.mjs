// The official client of the Model Context Protocol against `lull mcp`: it lists and calls every tool.
//
// Usage: mcp_client.mjs ERA LULL FOLDER PID; ERA is legacy (initialize) or a revision such as 2026-07-28. FOLDER has
// before.lull, after.lull, kernel.lull and serve.lull; PID is a program to attach to, none where that is not
// allowed. Prints a line for each thing that holds; ends with status 1 at the first that does not. The client checks each message by the schema of its revision.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const [era, lull, folder, pid] = process.argv.slice(2);
const CALLS = {
	profile: { command: ["train_cuda", "--steps=10"], output: "again" },
	attach: { pid: Number(pid), duration_s: 2, output: "attached" },
	why: { report: "before.lull" },
	try: { command: ["train_cuda", "--steps=100000"], env: ["CUDA_MODULE_LOADING=EAGER"], steps: 5, warmup: 1 },
	diff: { before: "before.lull", after: "after.lull" },
	gate: { baseline: "before.lull", reports: ["after.lull"] },
	stats: { report: "before.lull", table: "step_sum" },
	query: { report: "before.lull", sql: "SELECT count(*) AS n FROM steps", format: "json" },
	requests: { report: "serve.lull", intervals: 3 },
	timeline: { report: "before.lull", steps: 2 },
	kernel: { command: ["kernel.lull"] },
	info: { report: "before.lull" },
	export: { report: "before.lull", format: "jsonlines", output: "before.jsonl" },
	page: { report: "before.lull", output: "before.html" },
	doctor: {},
	job: { number: 1 },
};
const SAYS = {
	profile: /pageable-copy/, attach: /process \d+ continues/, why: /## Check/, try: /as it is .*ms a step/, diff: /step/, gate: /exit status 0: pass/, stats: /Step Summary/,
	query: /"n"/, requests: /requests in/, timeline: /idle/, kernel: /SM/, info: /planted.py/, export: /before.jsonl/, page: /before.html/,
	doctor: /CUDA/, job: /pageable-copy/,
};

async function connect() {
	const client = new Client({ name: "lull-test", version: "1" },
		era === "legacy" ? {} : { versionNegotiation: { mode: { pin: era } } });
	await client.connect(new StdioClientTransport({
		command: lull, args: ["mcp", "--folder", folder], env: { ...process.env }, stderr: "inherit",
	}));
	return client;
}

const text = (result) => result.content.map((c) => c.text ?? "").join("");

async function everyTool(client) {
	const { tools } = await client.listTools();
	assert.deepEqual(tools.map((t) => t.name), Object.keys(CALLS));
	for (const tool of tools) {
		assert.ok(tool.description.length > 40, tool.name);
		for (const name of Object.keys(CALLS[tool.name]))
			assert.ok(name in tool.inputSchema.properties, `${tool.name} ${name}`);
		const result = await client.callTool({ name: tool.name, arguments: CALLS[tool.name] });
		if (tool.name === "attach" && !pid) {
			assert.ok(result.isError, text(result));
			console.log("tool attach");
			continue;
		}
		assert.ok(!result.isError, `${tool.name}: ${text(result)}`);
		assert.match(text(result), SAYS[tool.name]);
		console.log(`tool ${tool.name}`);
	}
	for (const name of ["again.lull", ...(pid ? ["attached.lull"] : []), "before.jsonl", "before.html"])
		assert.ok(fs.statSync(path.join(folder, name)).size > 1000, name);
}

async function picture(client) {
	const { content } = await client.callTool({ name: "timeline", arguments: { report: "before.lull", picture: true } });
	assert.equal(content[0].type, "image");
	assert.equal(content[0].mimeType, "image/png");
	assert.equal(Buffer.from(content[0].data, "base64").subarray(1, 4).toString(), "PNG");
	console.log("picture");
}

async function everyResource(client) {
	const { resources } = await client.listResources();
	const uris = resources.map((r) => r.uri);
	assert.ok(uris.includes("lull://report/before.lull"), uris);
	for (const uri of ["lull://report/before.lull", "lull://info/before.lull", ...uris.filter((u) => !u.includes("report/"))]) {
		const { contents } = await client.readResource({ uri });
		assert.equal(contents[0].uri, uri);
		assert.ok(contents[0].text.length > 100, uri);
		console.log(`resource ${uri}`);
	}
	const { resourceTemplates } = await client.listResourceTemplates();
	assert.equal(resourceTemplates.length, 2);
	await assert.rejects(client.readResource({ uri: "lull://report/../../etc/passwd" }), /no report/);
}

async function progressAndCancel(client) {
	const told = [];
	const aborter = new AbortController();
	const call = client.callTool({ name: "profile", arguments: { command: ["sleep", "600"], output: "cancelled" } },
		{ onprogress: (p) => { told.push(p.progress); if (told.length > 1) aborter.abort("enough"); }, signal: aborter.signal });
	await assert.rejects(call);
	assert.ok(told.length > 1 && told[1] > told[0], told);
	// The recorder was told to end, and has sealed its report.
	while (!fs.existsSync(path.join(folder, "cancelled.lull")))
		await new Promise((resolve) => setTimeout(resolve, 20));
	console.log("progress and cancel");
}

async function wrongCalls(client) {
	await assert.rejects(client.callTool({ name: "wy", arguments: {} }), /unknown tool: wy; did you mean why/);
	const wrong = { name: "why", arguments: { report: "before.lull", reprot: 1 } };
	// 2025-11-25 and later show wrong arguments to the model.
	const result = await client.callTool(wrong);
	assert.ok(result.isError);
	assert.match(text(result), /why has no argument reprot: did you mean report/);
	const missing = await client.callTool({ name: "why", arguments: { report: "nothing.lull" } });
	assert.ok(missing.isError);
	assert.match(text(missing), /nothing.lull/);
	console.log("wrong calls");
}

const client = await connect();
console.log(`revision ${client.getNegotiatedProtocolVersion?.() ?? "?"}`);
assert.equal(client.getServerVersion()?.name, "lull");
await everyTool(client);
await picture(client);
await everyResource(client);
await progressAndCancel(client);
await wrongCalls(client);
await client.close();
console.log("all");
