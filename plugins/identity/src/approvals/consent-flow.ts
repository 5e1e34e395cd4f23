/** The name of a flow of consents, with the page it goes on from. */
export const consentFlowOf = (flow: string, uid: string): string => `${flow}.${uid}`;

export function partsOf(consentFlow: string): { flow: string; uid: string } {
  const at = consentFlow.indexOf('.');
  return at < 0 ? { flow: consentFlow, uid: '' } : { flow: consentFlow.slice(0, at), uid: consentFlow.slice(at + 1) };
}
