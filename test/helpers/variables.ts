/** A value as its variable has it. */
export const writeDefault = (value: unknown): string => (typeof value === 'boolean' ? (value ? 'on' : 'off') : String(value ?? ''))
