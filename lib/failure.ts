/** User and password in a URL. */
const CREDENTIALS = /\/\/[^/?#\s]*@/g

/** Causes that are told after an error. */
const DEPTH = 3

/** A text of an error, with the credentials of any URL in it left out. */
export function hideCredentials (text: string): string {
  return text.replace(CREDENTIALS, '//***@')
}

/** What failed and why, for people: the messages of an error and its causes. */
export function explainFailure (error: unknown): string {
  const messages: string[] = []
  let cause = error
  // Counted by errors, not by messages: causes may go in a circle.
  for (let told = 0; cause instanceof Error && told <= DEPTH; told++, cause = cause.cause) {
    const { message } = cause
    if (!messages.some((earlier) => earlier.includes(message))) messages.push(message)
  }
  return hideCredentials(messages.join(': ') || 'an error without a message')
}
