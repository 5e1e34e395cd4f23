const [STAR, DOLLAR, CR] = [0x2a, 0x24, 0x0d];

/**
 * How many bytes from the start are whole commands of the wire form, transactions with their end included: what a process that was killed
 * had half written behind them is no command yet.
 */
export function wholeCommands(bytes: Buffer): number {
  let [at, whole, inTransaction] = [0, 0, false];
  for (;;) {
    const command = commandAt(bytes, at);
    if (command === undefined) return whole;
    at = command.end;
    if (command.name === 'MULTI') inTransaction = true;
    if (command.name === 'EXEC' || command.name === 'DISCARD') inTransaction = false;
    if (!inTransaction) whole = at;
  }
}

function commandAt(bytes: Buffer, start: number): { name: string; end: number } | undefined {
  const words = lengthAt(bytes, start, STAR);
  if (words === undefined) return undefined;
  let { end } = words;
  let name = '';
  for (let word = 0; word < words.value; word++) {
    const size = lengthAt(bytes, end, DOLLAR);
    if (size === undefined || size.end + size.value + 2 > bytes.length) return undefined;
    // Only a few names matter, and they are short.
    if (word === 0 && size.value <= 7) name = bytes.toString('latin1', size.end, size.end + size.value).toUpperCase();
    end = size.end + size.value + 2;
  }
  return { name, end };
}

/** A mark, a number and the end of its line. */
function lengthAt(bytes: Buffer, start: number, mark: number): { value: number; end: number } | undefined {
  if (bytes[start] !== mark) return undefined;
  let value = 0;
  for (let at = start + 1; at < bytes.length; at++) {
    const byte = bytes[at] as number;
    if (byte === CR) return at > start + 1 && at + 1 < bytes.length ? { value, end: at + 2 } : undefined;
    if (byte < 0x30 || byte > 0x39) return undefined;
    value = value * 10 + byte - 0x30;
  }
  return undefined;
}
