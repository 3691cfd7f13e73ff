// Chats of the npm package `ai`, as useChat keeps them, without React. A command a line on stdin, an answer each.
import { createInterface } from 'node:readline';
import {
  AbstractChat,
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
  readUIMessageStream,
} from 'ai';

const url = process.argv[1];

class State {
  status = 'ready';
  error = undefined;
  constructor(messages) {
    this.messages = messages ?? [];
  }
  pushMessage = message => {
    this.messages = this.messages.concat(message);
  };
  popMessage = () => {
    this.messages = this.messages.slice(0, -1);
  };
  replaceMessage = (index, message) => {
    this.messages = this.messages.with
      ? this.messages.with(index, message)
      : this.messages.map((other, at) => (at === index ? message : other));
  };
  snapshot = thing => structuredClone(thing);
}

class Chat extends AbstractChat {
  constructor({ messages, ...init }) {
    super({ ...init, state: new State(messages) });
  }
}

const chats = new Map();

function chatOf(id, more = {}) {
  if (!chats.has(id) || more.messages) {
    const { headers, tools, turn, ...init } = more;
    const data = [];
    const chat = new Chat({
      id,
      transport: new DefaultChatTransport({
        api: `${url}/api/chat`,
        headers,
        body: tools ? { tools } : undefined,
        fetch: breaking,
        prepareReconnectToStreamRequest: ({ id, headers }) => ({
          api: `${url}/api/chat/${encodeURIComponent(id)}/stream${turn ? `?turn=${turn}` : ''}`,
          headers,
        }),
      }),
      sendAutomaticallyWhen: options =>
        lastAssistantMessageIsCompleteWithApprovalResponses(options) ||
        lastAssistantMessageIsCompleteWithToolCalls(options),
      onToolCall: ({ toolCall }) => {
        const output = { ran: toolCall.toolName, input: toolCall.input };
        void chat.addToolOutput({ tool: toolCall.toolName, toolCallId: toolCall.toolCallId, output });
      },
      onData: part => data.push(part),
      onError: () => {},
      ...init,
    });
    chat.data = data;
    chats.set(id, chat);
  }
  return chats.get(id);
}

async function settled(chat) {
  do {
    await new Promise(done => setTimeout(done, 5));
  } while (chat.status === 'submitted' || chat.status === 'streaming');
}

const verbs = {
  async send({ chat: id, text, message, breakAfter, ...more }) {
    left = breakAfter ?? Infinity;
    const chat = chatOf(id, more);
    await chat.sendMessage(message ? { id: message, parts: [{ type: 'text', text }] } : { text });
    await settled(chat);
    return chat;
  },
  async again({ chat: id }) {
    await chatOf(id).regenerate();
    return chatOf(id);
  },
  async resume({ chat: id, ...more }) {
    await chatOf(id, more).resumeStream();
    return chatOf(id);
  },
  async approve({ chat: id, approval, approved, reason }) {
    await chatOf(id).addToolApprovalResponse({ id: approval, approved, reason });
    await settled(chatOf(id));
    return chatOf(id);
  },
  // The stream alone, without a chat.
  async read({ chat: id, text }) {
    const transport = new DefaultChatTransport({ api: `${url}/api/chat` });
    const messages = [{ id: 'm1', role: 'user', parts: [{ type: 'text', text }] }];
    const stream = await transport.sendMessages({ chatId: id, messages, trigger: 'submit-message' });
    let last;
    let states = 0;
    for await (const message of readUIMessageStream({ stream })) {
      last = message;
      states += 1;
    }
    return { status: 'ready', messages: [last], states };
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { do: verb, ...command } = JSON.parse(line);
  try {
    const chat = await verbs[verb](command);
    const error = chat.error && { message: chat.error.message, status: chat.error.statusCode };
    const { messages, status, data, states } = chat;
    console.log(JSON.stringify({ messages, status, error, data, states }));
  } catch (thrown) {
    console.log(JSON.stringify({ thrown: String(thrown.stack ?? thrown) }));
  }
}
