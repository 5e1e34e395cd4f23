const LOCAL = /^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~\u0080-\u{10ffff}-]{1,64}$/u;
const LABEL = /^[A-Za-z0-9\u0080-\u{10ffff}]([A-Za-z0-9\u0080-\u{10ffff}-]{0,61}[A-Za-z0-9\u0080-\u{10ffff}])?$/u;

/** Whether a text is exactly one address: a mail program takes a text with commas, brackets or line breaks for a list of them. */
export function isOneAddress(text: string): boolean {
  const at = text.lastIndexOf('@');
  if (at < 1 || text.length > 254) return false;
  const [local, domain] = [text.slice(0, at), text.slice(at + 1)];
  // A control character counts for nobody's name; dots neither begin, end, nor stand together (RFC 5321, 4.1.2).
  return (
    !/[\p{Cc}\p{Z}]/u.test(text) && LOCAL.test(local) && !/^\.|\.$|\.\./.test(local) && domain.split('.').every(label => LABEL.test(label))
  );
}

/** `Name <address>` or an address alone, of a sender that a gateway names. */
export function senderOf(text: string): { readonly name: string; readonly address: string } | undefined {
  const [, name = '', bracketed] = /^\s*(?:"?([^"<>\r\n]*?)"?\s*)<([^<>]+)>\s*$/.exec(text) ?? [];
  const address = bracketed ?? text.trim();
  return isOneAddress(address) ? { name: bracketed === undefined ? '' : name.trim(), address } : undefined;
}
