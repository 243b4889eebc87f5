// Package controllers holds the one name that the Cilium operator uses of the module it stands for.
package controllers

// DerivedServiceAnnotation names, on a ServiceImport, the Service that was derived from it.
const DerivedServiceAnnotation = "multicluster.kubernetes.io/derived-service"
