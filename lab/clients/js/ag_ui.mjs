// npm `@ag-ui/client`: agents of AG-UI.
import { buildResumeArray, HttpAgent } from '@ag-ui/client';

console.error = (...said) => process.stderr.write(`${said.join(' ')}\n`);
const WEATHER = { name: 'weather', description: 'Weather.', parameters: PLACE };
let number = 0;

class Talk {
  constructor() {
    this.agent = new HttpAgent({ url: `${url}/agui`, threadId: `ag-ui-${number++}`, headers });
    this.pieces = 0;
  }
  async say(content, more) {
    this.agent.addMessage({ id: `m-${number++}`, role: 'user', content });
    return this.run(more);
  }
  async run(more) {
    this.outcome = this.error = undefined;
    await this.agent.runAgent(more, {
      onTextMessageContentEvent: () => void (this.pieces += 1),
      onRunFinishedEvent: ({ event }) => void (this.outcome = event.outcome),
      onRunErrorEvent: ({ event }) => void (this.error = event),
    });
    return this;
  }
  get told() {
    return this.agent.messages.at(-1).content;
  }
}

await report('@ag-ui/client', {
  async answer() {
    same((await new Talk().say('hello')).told, 'You said hello.');
  },
  async stream() {
    const talk = await new Talk().say('story');
    same([talk.told, talk.pieces > 1], [STORY, true]);
  },
  async tools() {
    const talk = await new Talk().say('weather', { tools: [WEATHER] });
    const [toolCallId] = talk.outcome.pendingToolCallIds;
    talk.agent.addMessage({ id: 'r-1', role: 'tool', toolCallId, content: 'rain' });
    same((await talk.run({ tools: [WEATHER] })).told, 'Seen rain.');
  },
  structured: absent('a run brings no schema; a brain with one of its own gives the answer as text'),
  async image() {
    const source = { type: 'data', value: PNG, mimeType: 'image/png' };
    const talk = await new Talk().say([{ type: 'text', text: 'look' }, { type: 'image', source }]);
    same(talk.told, SEEN);
  },
  async continue() {
    const talk = await new Talk().say('hello');
    same((await talk.say('everything')).told, 'user: hello | assistant: You said hello. | user: everything');
  },
  async failure() {
    const talk = new Talk();
    try {
      await talk.say('fail');
    } catch {}
    same(talk.error.message, 'the model refuses');
  },
  async cancel() {
    // `abortRun()` stops reading; the turn is cancelled by the gateway's own route.
    const talk = new Talk();
    const running_ = talk.say('linger').catch(() => {});
    await running();
    talk.agent.abortRun();
    await cancelRunning();
    await running_;
  },
  async approval() {
    const talk = await new Talk().say('refund');
    const [open] = talk.agent.pendingInterrupts;
    const responses = { [open.id]: { status: 'resolved', payload: { approved: true } } };
    same((await talk.run({ resume: buildResumeArray(talk.agent.pendingInterrupts, responses) })).told, 'Seen paid back.');
  },
});
