/** What the permission model refuses it names apart from its message. */
const withResource = ({ message, ...error }: Error): string => {
  const { code, resource } = error as { code?: string; resource?: string };
  return code === 'ERR_ACCESS_DENIED' && resource ? `${message} (${resource})` : message;
};

/** An error and its causes in one line, for a person. */
export const reasonOf = (error: unknown): string => {
  const messages: string[] = [];
  for (let at = error; at instanceof Error && messages.length < 5; at = at.cause) messages.push(withResource(at));
  return messages.join(': ') || String(error);
};
