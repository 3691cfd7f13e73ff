// What every script of this folder begins with.
// The connection of the next request breaks behind so many frames; Infinity: it holds.
let left = Infinity;

async function breaking(input, init) {
  const response = await fetch(input, init);
  if (left === Infinity || !response.ok || !response.body) return response;
  let frames = left;
  left = Infinity;
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  const body = new ReadableStream({
    async pull(controller) {
      const { done, value } = await reader.read();
      if (done) return controller.close();
      rest += decoder.decode(value, { stream: true });
      let at;
      while ((at = rest.indexOf('\n\n')) >= 0) {
        if (frames-- <= 0) {
          await reader.cancel();
          return controller.error(new TypeError('network error'));
        }
        controller.enqueue(new TextEncoder().encode(rest.slice(0, at + 2)));
        rest = rest.slice(at + 2);
      }
    },
  });
  return new Response(body, { status: response.status, headers: response.headers });
}
