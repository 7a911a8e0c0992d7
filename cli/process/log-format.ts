import type { Config } from '../../config.ts'
import { hasColor } from '../look.ts'

/** Turns a line of JSON into text for people. */
export type LogFormat = (line: string) => string

/** Characters that control a terminal, as JSON has them. An escaped backslash matches too, so that what follows it stays as it is. */
const CONTROLS = /\\\\|\\u00[01][0-9a-f]|\\[bfr]|[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gi

/** Whatever a stranger has got into the log changes nothing on a terminal. */
const hideControls = (line: string): string => line.replace(CONTROLS, (text) => text === '\\\\' ? text : '?')

/**
 * The format of log lines on this stream; undefined: they stay JSON. Without LOG_FORMAT a terminal gets text. It is Fastify's own for people,
 * which is loaded only for text.
 */
export async function loadLogFormat (
  { logFormat }: Pick<Config, 'logFormat'>, stream: { isTTY?: boolean }, env: NodeJS.ProcessEnv
): Promise<LogFormat | undefined> {
  if ((logFormat ?? (stream.isTTY === true ? 'text' : 'json')) === 'json') return undefined
  const { prettyFactory } = await import('pino-pretty')
  const format = prettyFactory({
    colorize: hasColor(stream, env), ignore: 'pid,hostname', singleLine: true, translateTime: 'SYS:yyyy-mm-dd HH:MM:ss'
  })
  return (line) => format(hideControls(line))
}
