import { defined } from './defined.ts'

/** User and password in a URL. */
const CREDENTIALS = /\/\/[^/?#\s]*@/g

/** The longest chain of causes that is followed. Causes may form a circle. */
const MAX_CAUSES = 4

/** Replaces the credentials of every URL in a text. */
export function hideCredentials (text: string): string {
  return text.replace(CREDENTIALS, '//***@')
}

/** The code of a failure of the system, such as ENOENT. Undefined for any other error. */
export function readCode (error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

/** The message of an error. */
export const readMessage = (error: unknown): string => error instanceof Error ? error.message : String(error)

/** The messages of an error and its causes in one readable line, each once. */
export function explainFailure (error: unknown): string {
  const messages: string[] = []
  let cause = error
  for (let depth = 0; cause instanceof Error && depth < MAX_CAUSES; depth++, cause = cause.cause) {
    const { message } = cause
    if (!messages.some((earlier) => earlier.includes(message))) messages.push(message)
  }
  return hideCredentials(messages.join(': ') || 'an error without a message')
}

export interface ErrorDescription {
  type: string
  message: string
  stack: string
  [field: string]: unknown
}

/** An error and its causes, for the log. Only these fields: a driver attaches documents and addresses to its errors. */
export function describeError (error: unknown, depth = 0): ErrorDescription {
  if (!(error instanceof Error)) return { type: typeof error, message: 'not an Error', stack: '' }
  const { name, message, stack = '', cause } = error
  const { code } = error as NodeJS.ErrnoException
  return defined({
    type: name,
    message: hideCredentials(message),
    stack: hideCredentials(stack),
    code,
    cause: cause !== undefined && depth < MAX_CAUSES ? describeError(cause, depth + 1) : undefined
  })
}
