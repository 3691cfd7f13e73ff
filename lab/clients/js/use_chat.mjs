// Chats of npm `ai` as useChat keeps them, without React, on `/api/chat`.
import {
  AbstractChat,
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
} from 'ai';

class State {
  status = 'ready';
  error = undefined;
  messages = [];
  states = 0;
  pushMessage = message => {
    this.messages = [...this.messages, message];
  };
  popMessage = () => {
    this.messages = this.messages.slice(0, -1);
  };
  replaceMessage = (index, message) => {
    this.states += 1;
    this.messages = this.messages.map((other, at) => (at === index ? message : other));
  };
  snapshot = thing => structuredClone(thing);
}

class Chat extends AbstractChat {
  constructor(id, tools) {
    const state = new State();
    const transport = new DefaultChatTransport({ api: `${url}/api/chat`, headers, body: { tools } });
    super({
      id,
      state,
      transport,
      sendAutomaticallyWhen: options =>
        lastAssistantMessageIsCompleteWithApprovalResponses(options) ||
        lastAssistantMessageIsCompleteWithToolCalls(options),
      onToolCall: ({ toolCall: { toolName: tool, toolCallId, input } }) =>
        void this.addToolOutput({ tool, toolCallId, output: `rain in ${input.place}` }),
      onError: () => {},
    });
    this.held = state;
  }
  async settled() {
    do await new Promise(done => setTimeout(done, 20));
    while (this.status === 'submitted' || this.status === 'streaming');
    return this;
  }
  get told() {
    const parts = this.messages.at(-1).parts.filter(part => part.type === 'text');
    return parts.map(part => part.text).join('');
  }
  get call() {
    return this.messages.at(-1).parts.find(part => part.type.startsWith('tool-'));
  }
}

let number = 0;

async function said(message, tools = []) {
  const chat = new Chat(`use-chat-${number++}`, tools);
  await chat.sendMessage(message);
  return chat.settled();
}

await report('ai', {
  async answer() {
    same((await said({ text: 'hello' })).told, 'You said hello.');
  },
  async stream() {
    const chat = await said({ text: 'story' });
    same([chat.told, chat.held.states > 3], [STORY, true]);
  },
  async tools() {
    const chat = await said({ text: 'weather' }, [{ name: 'weather', description: 'Weather.', parameters: PLACE }]);
    await until(async () => chat.told.includes('Seen'), 'the rest of the turn');
    same(chat.told, 'Seen rain in Oslo.');
  },
  structured: absent('useChat has no schemas; a brain with one of its own gives the answer as text'),
  async image() {
    const files = [{ type: 'file', mediaType: 'image/png', url: PICTURE }];
    same((await said({ text: 'look', files })).told, SEEN);
  },
  async continue() {
    const chat = await said({ text: 'hello' });
    await chat.sendMessage({ text: 'everything' });
    same((await chat.settled()).told, 'user: hello | assistant: You said hello. | user: everything');
  },
  async failure() {
    const chat = await said({ text: 'fail' });
    same([chat.status, chat.error.message], ['error', 'the model refuses']);
  },
  async cancel() {
    // `stop()` stops reading; the turn is cancelled by `/stop`.
    const chat = new Chat(`use-chat-${number++}`, []);
    const sending = chat.sendMessage({ text: 'linger' });
    const turn = await running();
    await chat.stop();
    await asked('POST', `/api/chat/${chat.id}/stop`);
    same(await ended(turn), 'cancelled');
    await sending;
  },
  async approval() {
    const chat = await said({ text: 'refund' });
    same(chat.call.state, 'approval-requested');
    await chat.addToolApprovalResponse({ id: chat.call.approval.id, approved: true });
    same((await chat.settled()).told, 'Seen paid back.');
  },
});
