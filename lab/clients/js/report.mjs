// What every script of this folder begins with: features are tried one by one, each told as a line of JSON.
import { readFileSync } from 'node:fs';

const [url, key] = process.argv.slice(-2);
const headers = { Authorization: `Bearer ${key}` };
const STORY = 'Once there was a fox 🦊 in the snow. '.repeat(6);
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const PICTURE = `data:image/png;base64,${PNG}`;
const SEEN = `A picture: image/png of ${Buffer.from(PNG, 'base64').length} bytes.`;
const PLACE = {
  type: 'object',
  properties: { place: { type: 'string' } },
  required: ['place'],
  additionalProperties: false,
};
const PERSON = {
  type: 'object',
  properties: { name: { type: 'string' }, age: { type: 'integer' } },
  required: ['name', 'age'],
  additionalProperties: false,
};
const PATIENCE_MS = 60_000;
// Some clients cancel the body of a broken connection, and nobody takes what that throws.
process.on('unhandledRejection', () => {});

class Absent extends Error {}

function absent(why) {
  return () => {
    throw new Absent(why);
  };
}

async function report(name, features) {
  const version = JSON.parse(readFileSync(`node_modules/${name}/package.json`)).version;
  console.log(JSON.stringify({ version }));
  for (const [feature, run] of Object.entries(features)) {
    let told = { feature, outcome: 'works' };
    try {
      await Promise.race([run(), later(PATIENCE_MS).then(() => fail('it took more than a minute'))]);
    } catch (error) {
      if (error instanceof Absent) told = { feature, outcome: 'absent', why: error.message };
      else {
        console.error(error);
        told = { feature, outcome: 'fails', why: String(error).split('\n')[0].slice(0, 300) };
      }
    }
    console.log(JSON.stringify(told));
  }
  process.exit(0);
}

function later(ms) {
  return new Promise(done => setTimeout(done, ms).unref());
}

function fail(why) {
  throw new Error(why);
}

function same(seen, wanted) {
  const [one, other] = [JSON.stringify(seen), JSON.stringify(wanted)];
  if (one !== other) fail(`${one} is not ${other}`);
}

// The gateway's own routes, for what a person does beside the client.
async function asked(method, path) {
  const answer = await fetch(url + path, { method, headers });
  if (!answer.ok) fail(`${path}: ${answer.status}`);
  return answer.json();
}

async function until(find, what) {
  const end = Date.now() + PATIENCE_MS;
  while (Date.now() < end) {
    const found = await find();
    if (found) return found;
    await new Promise(done => setTimeout(done, 50));
  }
  fail(`never came: ${what}`);
}

async function approveOne() {
  const open = await until(async () => (await asked('GET', '/v1/approvals')).approvals[0], 'an approval');
  await asked('POST', `/v1/approvals/${open.id}/approve`);
}

async function ended(turn) {
  const find = async () => (await asked('GET', `/v1/turns?limit=50`)).turns.find(one => one.turn_id === turn)?.ending;
  return until(find, "the turn's end");
}

async function running() {
  return until(async () => (await asked('GET', '/v1/turns?state=active&limit=5')).turns[0]?.turn_id, 'a turn');
}

async function cancelRunning() {
  const turn = await running();
  await asked('POST', `/v1/turns/${turn}/cancel`);
  same(await ended(turn), 'cancelled');
}

// What a failed turn rejects with. A success is an error here.
async function raised(run, word = '') {
  let found;
  try {
    found = await run();
  } catch (error) {
    const told = `${error} ${error.cause ?? ''} ${error.responseBody ?? ''}`;
    if (!told.includes(word)) fail(`${word} is not in ${told}`);
    return error;
  }
  return fail(`told as success: ${JSON.stringify(found)}`.slice(0, 300));
}
