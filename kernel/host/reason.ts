/** An error and its causes in one line, for a person. */
export const reasonOf = (error: unknown): string => {
  const messages: string[] = [];
  for (let at = error; at instanceof Error && messages.length < 5; at = at.cause) messages.push(at.message);
  return messages.join(': ') || String(error);
};
