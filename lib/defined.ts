/** An object whose fields of the value undefined are absent. */
type Defined<T> =
  & { [K in keyof T as undefined extends T[K] ? never : K]: T[K] }
  & { [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined> }

/** Leaves out the fields that are undefined. For what is stored or sent, where a field is absent or has a value. */
export function defined<T extends object> (fields: T): Defined<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Defined<T>
}

/** The names of the fields that an object has. */
export const listFields = <T extends object>(fields: T): (keyof T & string)[] => Object.keys(fields) as (keyof T & string)[]

/** The change of a record that sets these fields, and removes those that are undefined. */
export function setOrUnset<T extends object> (fields: T): { set: Defined<T>, unset: (keyof T & string)[] } {
  return { set: defined(fields), unset: listFields(fields).filter((name) => fields[name] === undefined) }
}
